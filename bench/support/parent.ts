/**
 * Owns: the child's side of the talk between the bench and its processes (child.ts is the other side): commands come in, answers and events
 * go out. A child whose bench is gone ends.
 */

/** What a process has used since it began. */
export interface Usage {
  readonly cpuMs: number;
  readonly rssMb: number;
}

/** Commands of a child: each takes at most one argument that survives JSON, and so does its answer. */
export type Commands = Readonly<Record<string, (argument: never) => unknown>>;

export type ToChild = { readonly id: number; readonly command: string; readonly argument: unknown };
export type ToParent =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string }
  | { readonly event: string; readonly value: unknown };

export function usage(): Usage {
  const { user, system } = process.cpuUsage();
  return { cpuMs: (user + system) / 1_000, rssMb: process.memoryUsage.rss() / 1024 / 1024 };
}

/** Tells the bench something that it did not ask for. */
export function tellParent(event: string, value: unknown): void {
  process.send?.({ event, value } satisfies ToParent);
}

/** Serves `commands`, and `usage`. The bench hears `ready` with `greeting`. */
export function serveParent(commands: Commands, greeting: unknown): void {
  const all: Readonly<Record<string, ((argument: never) => unknown) | undefined>> = { usage, ...commands };
  process.on('message', (message: ToChild) => void answer(message));
  process.on('disconnect', () => process.exit(0));
  tellParent('ready', greeting);

  async function answer({ id, command, argument }: ToChild): Promise<void> {
    try {
      const value = (await all[command]?.(argument as never)) ?? null;
      process.send?.({ id, value } satisfies ToParent);
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) } satisfies ToParent);
    }
  }
}
