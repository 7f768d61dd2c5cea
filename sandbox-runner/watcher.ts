/**
 * Owns: listening to Pi while a turn runs: words and stages for the readers, and one log line for each model and tool call.
 * Does not own: reporting (partial.ts), labels (stage.ts), the outcome (transcript.ts).
 * Rule: a log line has names of ours, outcomes and durations; never words of the model, of a tool or of a provider.
 */
import type { PartialAnswer } from './partial.ts';
import type { AgentSession, AgentSessionEvent } from './pi.ts';
import type { Protocol } from './protocol.ts';
import { turnStage } from './stage.ts';

/** Tools by the name that the model used; any other name is the model's own invention. */
const KNOWN_TOOLS = new Set(['read', 'bash', 'load_context', 'search_conversation']);

export interface WatcherOptions {
  readonly session: AgentSession;
  readonly partial: PartialAnswer;
  readonly protocol: Protocol;
  readonly runId: string;
  readonly epoch: number;
}

type MessageEnd = Extract<AgentSessionEvent, { type: 'message_end' }>;
type MessageUpdate = Extract<AgentSessionEvent, { type: 'message_update' }>;
type ToolEnd = Extract<AgentSessionEvent, { type: 'tool_execution_end' }>;

export class Watcher {
  /** Pi could not make the conversation fit the model. */
  overflowed = false;
  readonly #options: WatcherOptions;
  #modelSinceMs = performance.now();

  constructor(options: WatcherOptions) {
    this.#options = options;
    // A listener that throws would end Pi's run, so this one only calls what does not.
    options.session.subscribe((event) => this.#hear(event));
  }

  #hear(event: AgentSessionEvent): void {
    const { partial } = this.#options;
    switch (event.type) {
      case 'turn_start':
        this.#modelSinceMs = performance.now();
        break;
      case 'message_start':
        if (event.message.role === 'assistant') partial.messageStarted();
        break;
      case 'message_update':
        this.#hearWords(event.assistantMessageEvent);
        break;
      case 'message_end':
        this.#hearMessage(event.message);
        break;
      case 'tool_execution_start':
        partial.toolStarted(event.toolCallId, turnStage(event.toolName, event.args));
        break;
      case 'tool_execution_end':
        partial.toolEnded(event.toolCallId);
        this.#logTool(event);
        break;
      case 'compaction_end':
        if (event.reason === 'overflow' && event.result === undefined) this.overflowed = true;
        break;
      default:
        break;
    }
  }

  #hearWords(update: MessageUpdate['assistantMessageEvent']): void {
    if (update.type === 'text_start') this.#options.partial.blockStarted();
    if (update.type === 'text_delta') this.#options.partial.wordsWritten(update.delta);
  }

  #hearMessage(message: MessageEnd['message']): void {
    if (message.role !== 'assistant') return;
    const { partial, protocol, runId, epoch } = this.#options;
    const durationMs = Math.round(performance.now() - this.#modelSinceMs);
    protocol.log('info', 'model_call', { runId, epoch, outcome: message.stopReason, durationMs });
    if (message.stopReason === 'error') partial.messageFailed();
  }

  #logTool(event: ToolEnd): void {
    const tool = KNOWN_TOOLS.has(event.toolName) ? event.toolName : 'unknown';
    const durationMs = Math.round(event.durationMs ?? 0);
    this.#options.protocol.log('info', 'tool_call', {
      runId: this.#options.runId,
      epoch: this.#options.epoch,
      tool,
      outcome: event.isError ? 'error' : 'ok',
      durationMs,
    });
  }
}
