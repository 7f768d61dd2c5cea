/**
 * Owns: `heph doctor`: what this machine can do for Heph, checked without starting anything that lasts, and what to do about what is missing.
 * Does not own: the checks of a running server (/readyz).
 */
import { createServer } from 'node:net';

/** `warning`: Heph runs, with less. */
export interface Finding {
  readonly name: string;
  readonly state: 'ok' | 'warning' | 'problem';
  readonly text: string;
  /** What to do, a sentence; empty when all is well. */
  readonly cure: string;
}

export type Check = () => Promise<Finding>;

const MARKS = { ok: 'ok     ', warning: 'warning', problem: 'PROBLEM' } as const;

/** Runs the checks one after the other and prints each at once. Returns the exit code: 1 with a problem, else 0. */
export async function runDoctor(checks: readonly Check[], out: (text: string) => void): Promise<number> {
  let problems = 0;
  for (const check of checks) {
    const { name, state, text, cure } = await check();
    if (state === 'problem') problems += 1;
    out(`${MARKS[state]}  ${name.padEnd(12)} ${text}\n${cure === '' ? '' : `${' '.repeat(22)}${cure}\n`}`);
  }
  out(problems === 0 ? '\nHeph can run here.\n' : `\n${problems} problem(s) to solve before Heph can run here.\n`);
  return problems === 0 ? 0 : 1;
}

/** Whether a port can be opened; another Heph that runs is a common reason why not. */
export async function checkPort(variable: string, host: string, port: number): Promise<Finding> {
  const code = await new Promise<string | null>((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'unknown'));
    server.listen(port, host, () => server.close(() => resolve(null)));
  });
  const name = `port ${port}`;
  if (code === null) return { name, state: 'ok', text: 'free', cure: '' };
  const text = code === 'EADDRINUSE' ? 'in use, perhaps by a Heph that runs already' : `cannot be opened (${code})`;
  return { name, state: 'warning', text, cure: `Stop the other program, or set ${variable} to a free port.` };
}
