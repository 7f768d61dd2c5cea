/**
 * Owns: what the SQL function `turn_admission` answers, as types.
 * Does not own: the decision (db/migrations/0002_models.sql), the words of a refusal (actors/failure-texts.ts).
 */
import { z } from 'zod';
import type { LlmApi } from '../../src/contract/agent.ts';

/** Why a turn is not started. Part of the wire: turn.error.code. */
export const ADMISSION_REFUSALS = [
  'PERSON_ERASED',
  'AI_CHOICE',
  'NO_MODEL',
  'MODEL_TOO_SMALL',
  'UNPRICED',
  'BUDGET',
  'MODEL_PAUSED',
] as const;
export type AdmissionRefusal = (typeof ADMISSION_REFUSALS)[number];

/** What a person reads for each refusal. */
export type RefusalTexts = Readonly<Record<AdmissionRefusal, string>>;

const API = z.string() as z.ZodType<LlmApi>; // the column's own check lists them

/** What is frozen in `mentor_turn.admission`. Prices stay in the database: the statements that bill read them there. */
export const admissionRow = z.object({
  connectionId: z.string(),
  modelId: z.string(),
  /** Our name of the model. */
  model: z.string(),
  api: API,
  /** The provider's name of it. */
  providerModel: z.string(),
  contextTokens: z.number(),
  outputTokens: z.number(),
  deadlineMs: z.number(),
});
export type Admission = z.infer<typeof admissionRow>;
