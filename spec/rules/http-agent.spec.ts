/**
 * The agent wire over real HTTP: credentials, runs and epochs, pulls, refusals and bounds.
 */
import { once } from 'node:events';
import http from 'node:http';
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import type { RequestReport } from '../../src/http/index.ts';
import { newSecret, uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, SandboxClient, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';

describe('the agent wire', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await openRig();
  });

  async function running(of: HttpRig = rig) {
    const { body } = await of.ask('Why?');
    const sandbox = await of.sandbox(body.turn.conversationId);
    const pulled = await sandbox.next(5_000);
    return { sandbox, turn: body.turn, run: pulled.body.run as { id: string; epoch: number } };
  }

  it('gives a waiting sandbox the next run of its conversation, and takes its answer', async () => {
    const { sandbox, run: claimed, turn } = await running();
    expect(claimed).to.include({ kind: 'TURN', epoch: 1 });
    const lease = await sandbox.call(claimed, 'lease', {});
    expect(lease.status).to.equal(200);
    expect(lease.body.leaseTtlMs).to.be.within(1, 60_000);
    expect((await sandbox.partial(claimed, 0, 'Be')).body).to.deep.equal({});
    expect((await sandbox.answer(claimed, 'Because.')).status).to.equal(204);
    expect((await sandbox.answer(claimed, 'Because.')).body).to.include({ status: 409, code: 'MENTOR_LEASE_LOST' });
    expect((await rig.send('GET', `turns/${turn.id}`)).body.status).to.equal('DONE');
  });

  it('takes a question at once when it waits, and the person gets the rows as everybody reads them', async () => {
    const { sandbox, run: claimed, turn } = await running();
    await sandbox.answer(claimed, 'Because.');
    const parked = sandbox.next(25_000);
    await rig.parked(1);
    const { body } = await rig.ask('Is 北京 🟢\u0000 "there"?', { conversationId: turn.conversationId });
    expect(body.turn).to.include({ status: 'RUNNING', attempt: 1, waitingFor: null });
    expect((await rig.send('GET', `turns/${body.turn.id}`)).body).to.deep.equal(body.turn);
    const { body: page } = await rig.send('GET', `conversations/${turn.conversationId}/entries`);
    expect(page.entries.at(-1)).to.deep.equal(body.entry);
    await sandbox.answer((await parked).body.run, 'So.');
  });

  it('tells a sandbox its trace when the server traces it, and reports which attempt called', async () => {
    const reports: RequestReport[] = [];
    const traced = await openRig({
      agent: {
        traceparent: ({ id, epoch }) => `00-${id.replaceAll('-', '')}-000000000000000${epoch}-01`,
        observe: (one) => void reports.push(one),
      },
    });
    const { sandbox, run: claimed } = await running(traced);
    expect(claimed).to.include({ traceparent: `00-${claimed.id.replaceAll('-', '')}-0000000000000001-01` });
    await sandbox.call(claimed, 'lease', {});
    expect(reports.find(({ route }) => route.endsWith('/lease'))?.attempt).to.include({ runId: claimed.id, epoch: 1 });
    expect(reports.find(({ route }) => route.endsWith('/next'))?.attempt).to.equal(undefined);
    expect((await running()).run, 'without traces').to.not.have.property('traceparent');
  });

  it('answers a pull with 204 when nothing comes in time', async () => {
    const { sandbox, run: claimed } = await running();
    await sandbox.answer(claimed, 'Because.');
    expect((await sandbox.next(0)).status).to.equal(204);
  });

  it('forgets a pull whose client hangs up: the next pull gets the run', async () => {
    const { sandbox, run: claimed, turn } = await running();
    await sandbox.answer(claimed, 'Because.');
    const hungUp = new AbortController();
    const parked = sandbox.next(25_000, hungUp.signal).catch((error: Error) => error.name);
    await rig.parked(1);
    hungUp.abort();
    expect(await parked).to.equal('AbortError');
    await rig.parked(0);
    const { body } = await rig.ask('And now?', { conversationId: turn.conversationId });
    const { body: pulled } = await sandbox.next(5_000);
    expect(pulled.run.epoch).to.equal(1);
    await sandbox.answer(pulled.run, 'So.');
    expect((await rig.send('GET', `turns/${body.turn.id}`)).body).to.include({ status: 'DONE', attempt: 1 });
  });

  it('answers parked pulls with 204 when the listener stops', async () => {
    const { sandbox, run: claimed } = await running();
    await sandbox.answer(claimed, 'Because.');
    const parked = sandbox.next(25_000);
    await rig.parked(1);
    await rig.agent.stop(5_000);
    expect((await parked).status).to.equal(204);
  });

  it('refuses every credential but that of a live sandbox, and one that was ended at once', async () => {
    const { sandbox, run: claimed } = await running();
    for (const authorization of [
      '',
      'Bearer',
      `Bearer ${newSecret()}`,
      `Basic ${sandbox.credential}`,
      `Bearer ${sandbox.credential}x`,
      'Bearer é',
    ]) {
      const answer = await sandbox.send('POST', '/internal/agent/next', {
        body: { waitMs: 0 },
        headers: { authorization: encodeURI(authorization) },
      });
      expect([answer.status, answer.body.code], authorization).to.deep.equal([401, 'SANDBOX_UNKNOWN']);
    }
    await run(database.db, sql.unsafe`update sandbox set state = 'ENDED', ended_at = now() where state <> 'ENDED' returning id`);
    for (const name of ['lease', 'context', 'turn/partial', 'turn/end', 'end']) {
      const answer = await sandbox.call(claimed, name, name === 'context' ? undefined : {});
      expect([answer.status, answer.body.code], name).to.deep.equal([401, 'SANDBOX_UNKNOWN']);
    }
  });

  it('lets nothing pass of a sandbox that was ended while it still holds its run, on a server that has served it before', async () => {
    // rule: R5
    const { sandbox, run: claimed, turn } = await running();
    expect((await sandbox.partial(claimed, 0, 'Be')).status).to.equal(200);
    await run(database.db, sql.unsafe`update sandbox set state = 'ENDED', ended_at = now() where state <> 'ENDED' returning id`);
    const answers = [
      await sandbox.call(claimed, 'context'),
      await sandbox.partial(claimed, 2, 'cause'),
      await sandbox.answer(claimed, 'No.'),
    ];
    for (const { status, body } of answers) expect([status, body.code]).to.deep.equal([401, 'SANDBOX_UNKNOWN']);
    const { body } = await rig.send('GET', `conversations/${turn.conversationId}/entries`);
    expect(body.entries.map(({ kind }: { kind: string }) => kind)).to.deep.equal(['question']);
    expect(rig.live.partials.of(rig.person.workspaceId, rig.person.accountId).map(({ words }) => words.from(0))).to.deep.equal(['Be']);
  });

  it('answers 401 for a run of another conversation and 409 for one that nobody has', async () => {
    // rule: R5
    const { sandbox } = await running();
    const other = await openRig({ person: await makePerson(database.db) });
    const foreign = await running(other);
    const bodies = { lease: {}, context: undefined, 'turn/partial': { offset: 0, text: 'x', stage: null } };
    for (const [name, sent] of Object.entries(bodies)) {
      const stolen = await sandbox.call(foreign.run, name, sent);
      expect([stolen.status, stolen.body.code], name).to.deep.equal([401, 'SANDBOX_UNKNOWN']);
      const unknown = await sandbox.call({ id: uuidv7(), epoch: 1 }, name, sent);
      expect([unknown.status, unknown.body.code], name).to.deep.equal([409, 'MENTOR_LEASE_LOST']);
    }
  });

  it('refuses a run that differs from the path and an epoch that is no number', async () => {
    const { sandbox, run: claimed } = await running();
    const path = `/internal/agent/runs/${claimed.id}/lease`;
    for (const headers of [
      {},
      { 'x-agent-run': claimed.id },
      { 'x-agent-run': uuidv7(), 'x-agent-epoch': '1' },
      { 'x-agent-run': claimed.id, 'x-agent-epoch': '1.5' },
      { 'x-agent-run': claimed.id, 'x-agent-epoch': '-1' },
      { 'x-agent-run': claimed.id.toUpperCase(), 'x-agent-epoch': '1' },
    ]) {
      const answer = await sandbox.send('POST', path, { body: {}, headers: headers as Record<string, string> });
      expect([answer.status, answer.body.code], JSON.stringify(headers)).to.deep.equal([400, 'BAD_REQUEST']);
    }
  });

  it('answers a stale epoch with 409', async () => {
    const { sandbox, run: claimed } = await running();
    for (const name of ['lease', 'turn/partial', 'end', 'context'] as const) {
      const body = { lease: {}, 'turn/partial': { offset: 0, text: 'x', stage: null }, end: { outcome: 'COMPLETED' }, context: undefined }[
        name
      ];
      const answer = await sandbox.call({ ...claimed, epoch: 0 }, name, body);
      expect([answer.status, answer.body.code], name).to.deep.equal([409, 'MENTOR_LEASE_LOST']);
    }
  });

  it('tells a stopped attempt to stop: at once with a renewal, and with a 409 for everything but its end', async () => {
    const { sandbox, run: claimed, turn } = await running();
    await rig.send('PATCH', `turns/${turn.id}/status`, { body: { status: 'STOPPED' } });
    expect((await sandbox.call(claimed, 'lease', {})).body).to.include({ stop: 'developer' });
    const context = await sandbox.call(claimed, 'context');
    expect(context.body).to.include({ status: 409, code: 'MENTOR_TURN_STOPPED', stop: 'developer' });
    const end = await sandbox.call(claimed, 'turn/end', { outcome: 'STOPPED', entries: [], lastPartial: null });
    expect(end.status).to.equal(204);
  });

  it('takes an end of up to 4 MiB and answers a larger one with 413', async () => {
    const { sandbox, run: claimed } = await running();
    const end = (bytes: number) => {
      const bare = { outcome: 'DONE', entries: [], lastPartial: null, padding: '' };
      return { ...bare, padding: 'x'.repeat(bytes - JSON.stringify(bare).length) };
    };
    const large = await sandbox.call(claimed, 'turn/end', end(LIMITS.gatewayBodyMaxBytes + 1));
    expect([large.status, large.body.code]).to.deep.equal([413, 'BODY_TOO_LARGE']);
    const full = await sandbox.call(claimed, 'turn/end', end(LIMITS.gatewayBodyMaxBytes));
    expect(full.status).not.to.equal(413);
  });

  it('refuses an end with more than 500 entries and a pull that waits too long', async () => {
    const { sandbox, run: claimed } = await running();
    const entry = { type: 'message', id: uuidv7(), parentId: null, timestamp: '' };
    const end = await sandbox.call(claimed, 'turn/end', { outcome: 'DONE', entries: Array(501).fill(entry), lastPartial: null });
    const pull = await sandbox.next(LIMITS.pullWaitMaxMs + 1);
    expect([end.status, pull.status]).to.deep.equal([400, 400]);
  });

  it('hands model calls to the gateway with the attempt that makes them', async () => {
    const { sandbox, run: claimed } = await running();
    const headers = { 'x-agent-run': claimed.id, 'x-agent-epoch': '1' };
    const { body } = await sandbox.send('POST', '/internal/llm/v1/chat/completions', { body: {}, headers });
    expect(body.attempt).to.deep.include({ runId: claimed.id, epoch: 1 });
    const bare = await sandbox.send('POST', '/internal/llm/v1/chat/completions', { body: {} });
    expect(bare.status).to.equal(400);
    const nobody = new SandboxClient(rig.agentPort, newSecret());
    expect((await nobody.send('POST', '/internal/llm/v1/chat/completions', { body: {}, headers })).status).to.equal(401);
  });

  it('describes itself to nobody: an unknown path is an empty 404', async () => {
    for (const path of ['/', '/session', '/metrics', '/internal', '/internal/agent', '/internal/agent/runs/x/unknown', '/internal/llmx']) {
      const answer = await fetch(`http://127.0.0.1:${rig.agentPort}${path}`);
      expect([answer.status, await answer.text()], path).to.deep.equal([404, '']);
    }
  });

  it('leaves nothing behind of a client that sends half a request and goes', async () => {
    const { sandbox, run: claimed } = await running();
    await sandbox.answer(claimed, 'Because.');
    const headers = { authorization: `Bearer ${sandbox.credential}`, 'content-type': 'application/json', 'content-length': '20' };
    const request = http.request({ port: rig.agentPort, host: '127.0.0.1', method: 'POST', path: '/internal/agent/next', headers });
    request.on('error', () => {});
    const closed = new Promise((resolve) => request.once('close', resolve));
    request.write('{');
    await once(request, 'socket');
    request.destroy();
    await closed;
    await rig.parked(0);
    expect((await sandbox.next(0)).status).to.equal(204);
  });
});
