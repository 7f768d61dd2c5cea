/**
 * A rolling restart under load: three servers behind one address, stopped and started again one after the other while people ask and read.
 * HEPH_TEST_FAULTS=all asks 200 questions; without it fewer do, because each restarted server starts its sandboxes anew.
 */
import { expect } from 'chai';
import type { Turn } from '../../src/contract/web.ts';
import { until } from '../support/actors.ts';
import { Flow } from '../support/flow.ts';
import { LoadBalancer } from '../support/load-balancer.ts';
import { PatientPerson, writesFor } from '../support/patient-person.ts';
import { newDataDir, type ServerProcess } from '../support/server-process.ts';
import { StreamReader } from '../support/stream-reader.ts';

const ALL = process.env['HEPH_TEST_FAULTS'] === 'all';
const CONVERSATIONS = ALL ? 10 : 3;
/** At least; questions go on until the last server is back. */
const QUESTIONS_EACH = ALL ? 20 : 3;
const READERS = 3;
/** The provider writes for about this long, so that a restart finds answers half written. */
const WRITING_MS = 300;

describe('a rolling restart of three servers under load', function () {
  this.timeout(ALL ? 900_000 : 480_000);
  let flow: Flow;
  let front: LoadBalancer;
  const readers: StreamReader[] = [];

  before(async () => {
    front = await LoadBalancer.open();
    flow = await Flow.open({ env: { HEPH_SANDBOX_WARM: '0', HEPH_SHUTDOWN_GRACE: '20s' } });
    flow.model.use(writesFor(WRITING_MS));
  });
  after(async () => {
    await Promise.all(readers.map((reader) => reader.close()));
    await flow.close();
    await front.close();
  });

  async function serve(dataDir: string): Promise<ServerProcess> {
    const server = await flow.server({ dataDir });
    front.add({ port: server.port, opsPort: server.opsPort });
    return server;
  }

  it('fails no turn, loses no partial stream, and answers each question once', async () => {
    const dataDirs = [newDataDir(), newDataDir(), newDataDir()];
    const servers = await Promise.all(dataDirs.map(serve));
    const person = new PatientPerson(front.url);
    await person.answered('the first one');
    const conversations = await flow.threads(CONVERSATIONS);
    for (let n = 0; n < READERS; n++) readers.push(new StreamReader(front.url));

    let restarted = false;
    const load = conversations.map(async (conversationId, c) => {
      const turns: Turn[] = [];
      for (let n = 0; n < QUESTIONS_EACH || !restarted; n++) turns.push(await person.answered(`question ${n} of ${c}`, conversationId));
      return turns;
    });
    for (const [at, server] of servers.entries()) {
      expect(await server.stop(), 'it drained').to.equal(0);
      await serve(dataDirs[at] as string);
    }
    restarted = true;
    const asked = await Promise.all(load);

    expect(asked.flat().length).to.be.at.least(CONVERSATIONS * QUESTIONS_EACH);
    expect(asked.flat().filter(({ status }) => status !== 'DONE')).to.deep.equal([]);
    for (const [c, conversationId] of conversations.entries()) {
      const said = (await person.client.entries(conversationId)).filter(({ kind }) => kind === 'answer').map(({ text }) => text);
      expect(said).to.deep.equal((asked[c] ?? []).map((_, n) => `You asked: question ${n} of ${c}`));
    }
    for (const reader of readers) {
      await until('nothing is shown as being written', () => reader.shown.size === 0);
      expect(reader.gaps).to.deep.equal([]);
      expect(reader.seen.size, 'it saw answers while they were written').to.be.above(0);
      expect(reader.hints, 'each stream that a server ended says when to come back').to.not.include(null);
    }
    expect(
      readers.flatMap(({ hints }) => hints),
      'and readers lost their servers',
    ).to.not.be.empty;
  });
});
