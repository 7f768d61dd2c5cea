/**
 * Owns: the checks of `heph doctor`, put together from the parts that a server is made of.
 */
import { mkdirSync } from 'node:fs';
import { locatePackage, prepareBinaries } from '../db/embedded/binaries.ts';
import { lentUser } from '../db/embedded/user.ts';
import { openDatabase } from '../db/pool.ts';
import { type Check, checkPort, type Finding } from './cli/doctor.ts';
import type { Config } from './config.ts';
import { silentLog } from './kernel/log.ts';
import { prepareLocalSandboxes } from './local-sandboxes.ts';

const CONNECT_MAX_MS = 5_000;

export function doctorChecks(config: Config): readonly Check[] {
  return [
    async () => ({ name: 'node', state: 'ok', text: process.version, cure: '' }),
    () => checkDataDir(config),
    () => (config.databaseUrl === null ? checkEmbedded(config) : checkExternal(config.databaseUrl)),
    () => checkSandboxes(config),
    async () => checkProvider(config),
    () => checkPort('HEPH_PORT', config.bindHost, config.port),
    () => checkPort('HEPH_AGENT_PORT', config.bindHost, config.agentPort),
    () => checkPort('HEPH_OPS_PORT', config.bindHost, config.opsPort),
  ];
}

async function checkDataDir({ dataDir }: Config): Promise<Finding> {
  const name = 'data';
  try {
    mkdirSync(dataDir, { recursive: true });
    return { name, state: 'ok', text: dataDir, cure: '' };
  } catch {
    return { name, state: 'problem', text: `${dataDir} cannot be made`, cure: 'Set HEPH_DATA_DIR to a folder that this user may write.' };
  }
}

async function checkEmbedded({ dataDir }: Config): Promise<Finding> {
  const name = 'postgresql';
  try {
    const { majorVersion } = await prepareBinaries(locatePackage(), lentUser(dataDir, dataDir));
    return { name, state: 'ok', text: `embedded, version ${majorVersion}`, cure: '' };
  } catch (error) {
    return { name, state: 'problem', text: 'the embedded one does not run', cure: (error as Error).message };
  }
}

async function checkExternal(url: string): Promise<Finding> {
  const name = 'postgresql';
  const bounds = { poolMax: 1, waitersMax: 1, acquireTimeoutMs: CONNECT_MAX_MS, statementTimeoutMs: CONNECT_MAX_MS };
  try {
    const db = await openDatabase({ url, ...bounds, applicationName: 'heph-doctor' });
    await db.close();
    return { name, state: 'ok', text: 'HEPH_DATABASE_URL answers', cure: '' };
  } catch {
    return {
      name,
      state: 'problem',
      text: 'HEPH_DATABASE_URL does not answer',
      cure: 'Start that PostgreSQL, or correct the address, the user or the password.',
    };
  }
}

async function checkSandboxes(config: Config): Promise<Finding> {
  const name = 'sandboxes';
  try {
    const { isolation } = await prepareLocalSandboxes({ ...config, sandboxIsolation: 'auto' }, silentLog);
    const { tier, why, cure } = isolation;
    if (tier === 'isolated') return { name, state: 'ok', text: 'isolated', cure: '' };
    const without = config.sandboxIsolation === 'required' && tier === 'none';
    return {
      name,
      state: without ? 'problem' : 'warning',
      text: `${tier}: ${why}${tier === 'none' ? ' Commands are refused.' : ''}`,
      cure,
    };
  } catch (error) {
    return { name, state: 'problem', text: (error as Error).message, cure: '' };
  }
}

function checkProvider({ provider }: Config): Finding {
  const name = 'provider';
  if (provider) return { name, state: 'ok', text: `${provider.model} at ${provider.baseUrl.host}`, cure: '' };
  const cure = 'Set HEPH_LLM_API, HEPH_LLM_BASE_URL, HEPH_LLM_API_KEY and HEPH_LLM_MODEL for real answers.';
  return { name, state: 'warning', text: 'none in the settings: the demo model answers until an administrator binds another', cure };
}
