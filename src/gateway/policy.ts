/**
 * Owns: what a sandbox may ask of a model. The gateway is a sandbox's only way out, so nothing in a request may make the provider fetch,
 * search, run or remember something on the sandbox's behalf, or choose another model. A pure function: (api, json) -> json or why not.
 */
import type { LlmApi } from '../contract/agent.ts';
import { type JsonObject, objectsIn, toObject } from './json.ts';

export type PolicyResult = { readonly kind: 'allowed'; readonly json: JsonObject; readonly streams: boolean } | Refused;
interface Refused {
  readonly kind: 'refused';
  readonly why: string;
}

/** Members that reach a hosted tool, another model, or state that the provider keeps. */
const REFUSED_MEMBERS: Readonly<Record<LlmApi, readonly string[]>> = {
  'openai-completions': ['web_search_options', 'plugins', 'models', 'fallbacks'],
  'openai-responses': ['background', 'conversation', 'previous_response_id', 'prompt', 'plugins', 'models', 'fallbacks'],
  'anthropic-messages': ['mcp_servers', 'container', 'fallbacks', 'models'],
};

/** Tools that the loop itself runs. An Anthropic tool without a type is one of its own. */
const OWN_TOOL_TYPES: Readonly<Record<LlmApi, readonly unknown[]>> = {
  'openai-completions': ['function', 'custom'],
  'openai-responses': ['function', 'custom'],
  'anthropic-messages': [undefined, null, 'custom'],
};

/** The request with usage reported at the end of a stream. Its model is written over when the call is opened. */
export function applyPolicy(api: LlmApi, json: JsonObject): PolicyResult {
  const why = refusedMember(api, json) ?? hostedTool(api, json) ?? remoteContent(json);
  if (why !== undefined) return { kind: 'refused', why };
  const streams = json['stream'] === true;
  const metered = api === 'openai-completions' && streams;
  const streamOptions = metered ? { stream_options: { ...toObject(json['stream_options']), include_usage: true } } : {};
  return { kind: 'allowed', streams, json: { ...json, ...streamOptions } };
}

function refusedMember(api: LlmApi, json: JsonObject): string | undefined {
  const found = REFUSED_MEMBERS[api].find((name) => json[name] !== undefined && json[name] !== null && json[name] !== false);
  return (
    found && `"${found}" is not available here: model calls of a sandbox use the configured model and nothing that the provider hosts.`
  );
}

function hostedTool(api: LlmApi, json: JsonObject): string | undefined {
  const tools = json['tools'];
  if (tools === undefined || tools === null) return undefined;
  if (!Array.isArray(tools)) return '"tools" must be a list.';
  for (const [index, value] of tools.entries()) {
    const tool = toObject(value);
    if (!tool) return `tools[${index}] must be an object.`;
    if (!OWN_TOOL_TYPES[api].includes(tool['type'])) {
      return `tools[${index}] is a tool that the provider runs. Only tools that run in the sandbox are available here.`;
    }
  }
  return undefined;
}

/** A provider fetches images and files by address: that would be a way out of the sandbox. They are sent inline instead. */
function remoteContent(json: JsonObject): string | undefined {
  const found = [...objectsIn(json['messages']), ...objectsIn(json['input'])].some((message) => partsOf(message).some(isRemote));
  return found ? 'Images and files must be sent inline: the provider may not fetch an address.' : undefined;
}

/** The content parts of a message, with those inside of tool results. */
function partsOf(message: JsonObject): readonly JsonObject[] {
  const parts = [message, ...objectsIn(message['content']), ...objectsIn(message['output'])];
  return parts.flatMap((part) => (part === message ? [part] : [part, ...objectsIn(part['content']), ...objectsIn(part['output'])]));
}

function isRemote(part: JsonObject): boolean {
  const image = toObject(part['image_url'])?.['url'] ?? part['image_url'];
  const file = part['file_url'] ?? toObject(part['file'])?.['file_url'];
  const source = toObject(part['source']);
  return isAddress(image) || isAddress(file) || source?.['type'] === 'url' || source?.['type'] === 'file';
}

function isAddress(value: unknown): boolean {
  return typeof value === 'string' && !/^data:/i.test(value);
}
