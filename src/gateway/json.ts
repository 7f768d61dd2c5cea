/**
 * Owns: reading JSON of others without trusting its shape.
 */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The value, if it is an object that is no list. */
export function toObject(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

/** The objects of a list; nothing for any other value. */
export function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(toObject).filter((item) => item !== undefined) : [];
}

/** The object that `text` holds; undefined when it is no JSON, or no object. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    return toObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}
