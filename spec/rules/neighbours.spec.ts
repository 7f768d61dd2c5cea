/**
 * Server and runner work with their neighbours one version older and newer: no schema of a wire refuses a member that it does not know, and what
 * the first released runner and server said is still understood.
 */
import { expect } from 'chai';
import { z } from 'zod';
import * as agent from '../../src/contract/agent.ts';
import * as events from '../../src/contract/events.ts';
import * as web from '../../src/contract/web.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';

const ID = uuidv7();
const ENTRY = {
  type: 'message',
  id: 'a1',
  parentId: null,
  timestamp: '2026-01-01T00:00:00.000Z',
  message: { role: 'assistant', content: [] },
};

/** Everything that the first released version sent, with nothing that was added since. */
const FIRST_RELEASE: readonly (readonly [name: keyof typeof agent, said: Record<string, unknown>])[] = [
  ['nextRequestSchema', { waitMs: 25_000 }],
  ['nextResponseSchema', { run: { id: ID, kind: 'TURN', epoch: 1, leaseTtlMs: 60_000, renewEveryMs: 25_000, deadlineMs: 300_000 } }],
  [
    'contextResponseSchema',
    {
      ...{ conversationId: ID, turnId: ID, questionEntryId: ID, entries: [ENTRY], prompt: 'Why?', systemPrompt: 'Be kind.', situation: '' },
      ...{ model: { id: 'big', api: 'openai-completions', contextTokens: 128_000, outputTokens: 8_192 }, documents: '' },
    },
  ],
  ['leaseResponseSchema', { leaseTtlMs: 60_000, deadlineMs: 300_000 }],
  ['partialRequestSchema', { offset: 0, text: 'Because', stage: null }],
  ['partialResponseSchema', {}],
  ['turnEndRequestSchema', { outcome: 'DONE', entries: [ENTRY], lastPartial: { text: 'Because', stage: null } }],
  ['turnEndRequestSchema', { outcome: 'FAILED', reason: 'ERROR', detail: 'model_error', entries: [], lastPartial: null }],
  ['runEndRequestSchema', { outcome: 'HANDED_ON' }],
  ['runnerAssignmentSchema', { gateway: 'http://127.0.0.1:1', credential: 'c', conversationId: ID, bash: true, workDir: '/w' }],
  ['runnerCommandSchema', { type: 'drain' }],
  ['runnerReportSchema', { type: 'busy', runId: ID, epoch: 1 }],
];

const SCHEMAS = new Map(Object.entries<unknown>(agent).filter((one): one is [string, z.ZodType] => one[1] instanceof z.ZodType));

/** Paths in a JSON schema at which a further member is refused. */
function closedAt(node: unknown, at = ''): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const here = (node as { additionalProperties?: unknown }).additionalProperties === false ? [at || '.'] : [];
  return [...here, ...Object.entries(node).flatMap(([name, value]) => closedAt(value, `${at}/${name}`))];
}

describe('a neighbour of another version', () => {
  for (const [file, wire] of Object.entries({ agent, web, events })) {
    const schemas = Object.entries(wire).filter((one): one is [string, z.ZodType] => one[1] instanceof z.ZodType);

    it(`may say more than ${file}.ts knows, in each of its messages`, () => {
      expect(schemas).to.not.be.empty;
      for (const [name, schema] of schemas) {
        expect(closedAt(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })), name).to.deep.equal([]);
      }
    });
  }

  for (const [name, said] of FIRST_RELEASE) {
    it(`is understood when it says what the first release said in ${name}, and when it says more`, () => {
      const schema = SCHEMAS.get(name) as z.ZodType;
      expect(schema.safeParse(said).error).to.equal(undefined);
      expect(schema.safeParse({ ...said, ofTheNextRelease: { any: ['thing'] } }).error).to.equal(undefined);
    });
  }

  it('of another release gets a time zone of its own making where it does not name one', () => {
    const [, said] = FIRST_RELEASE[2] as (typeof FIRST_RELEASE)[number];
    expect(agent.contextResponseSchema.parse(said).timeZone).to.equal('UTC');
  });
});
