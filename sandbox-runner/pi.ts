/**
 * Owns: loading Pi. Its own bundle is the same code as the package's exports and starts in half the time; it lies outside the
 * package's `exports`, so the package is pinned exactly and spec/flows/runner.spec.ts runs on it.
 * Does not own: how a session is opened (pi-session.ts). Pi's types come from the package, its values from here.
 */
export type {
  AgentSession,
  AgentSessionEvent,
  ExtensionFactory,
  ResourceLoader,
  SessionEntry,
  SessionManager,
  SessionProjection,
  ToolDefinition,
} from '@earendil-works/pi-coding-agent';

type Pi = typeof import('@earendil-works/pi-coding-agent');

const bundle = new URL('bundle/index.js', import.meta.resolve('@earendil-works/pi-coding-agent'));

/** The SDK's exports. */
export const pi = (await import(bundle.href)) as Pi;
