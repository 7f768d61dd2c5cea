/**
 * Owns: the probes: what each one runs inside of a sandbox, and what shows that it reached nothing.
 * `harmless`: it may also run where nothing is isolated (the negative control), as whoever runs the tests.
 */
import { spawnSync } from 'node:child_process';
import { statfsSync, statSync } from 'node:fs';
import { type IsolationLab, LAB_DISK_BYTES, LAB_LIMITS } from '../support/isolation-lab.ts';

export interface Probe {
  readonly id: string;
  readonly title: string;
  readonly harmless: boolean;
  /** True: the sandbox holds. */
  holds(lab: IsolationLab): Promise<boolean>;
}

type Ask = string | ((lab: IsolationLab) => string);

/** A probe that is one command and a look at what it printed. */
function command(
  id: string,
  title: string,
  probe: { harmless?: boolean; run: Ask; holds: (text: string, lab: IsolationLab) => boolean },
): Probe {
  const { harmless = true, run, holds } = probe;
  return { id, title, harmless, holds: async (lab) => holds(await lab.bash(typeof run === 'string' ? run : run(lab)), lab) };
}

const clean = (text: string, lab: IsolationLab): boolean => !text.includes(lab.canary);
const numbers = (text: string): number[] =>
  text
    .split(/\s+/)
    .filter((word) => /^\d+$/.test(word))
    .map(Number);
/** perl is on every Debian: a system call by its number, and what came of it. EPERM (1) and ENOSYS (38) are refusals. */
const syscalls = (calls: Readonly<Record<string, string>>): string =>
  Object.entries(calls)
    .map(
      ([name, args]) =>
        `perl -e '$r = syscall(${args}); print "${name} ", ($r < 0 && ($!+0 == 1 || $!+0 == 38) ? "refused" : "reached"), "\\n"'`,
    )
    .join('; ');
const allRefused = (count: number) => (text: string) => (text.match(/ refused/g) ?? []).length === count && !text.includes(' reached');

const files: Probe[] = [
  command('fs.host-secret', 'a file of the host that everybody may read is not there', {
    run: (lab) => `cat ${lab.secretFile} /proc/1/root${lab.secretFile}; ls ${lab.dir}; true`,
    holds: clean,
  }),
  command('fs.passwords', 'the users and passwords of the host are not there', {
    run: 'cat /etc/shadow /etc/passwd 2>/dev/null | wc -l',
    holds: (text) => text.trim() === '0',
  }),
  command('fs.homes', 'nobody has a home there', { run: 'ls -A /root /home 2>/dev/null | wc -l', holds: (text) => text.trim() === '0' }),
  command('fs.other-work', 'the documents of another conversation are not there', {
    run: (lab) => `cat ${lab.dir}/other/document 2>/dev/null; find / -name document -path '*other*' 2>/dev/null | head -3; true`,
    holds: (text, lab) => clean(text, lab) && !text.includes('/other/document'),
  }),
  command('fs.links', 'a link to a file of the host leads nowhere', {
    run: (lab) =>
      `cd /tmp; ln -sfn ${lab.secretFile} l.$$; cat l.$$; ln ${lab.secretFile} h.$$ 2>/dev/null && cat h.$$; rm -f l.$$ h.$$; true`,
    holds: clean,
  }),
  command('fs.read-only', 'only the work folder and /tmp can be written', {
    harmless: false,
    run: 'for d in / /usr /usr/bin /etc /opt /opt/heph /opt/cache /run /proc/sys/kernel /sys /dev; do (echo x > $d/.w) 2>/dev/null && echo WROTE $d; done; echo ok > /workspace/work/.ok && cat /workspace/work/.ok; echo ok > /tmp/.ok && cat /tmp/.ok',
    holds: (text) => !text.includes('WROTE') && (text.match(/ok/g) ?? []).length === 2,
  }),
  command('fs.program', 'the program of the runner is not there for a command', {
    run: 'ls -A /opt/heph /opt/cache /opt/node 2>/dev/null; find / -name driver.ts 2>/dev/null | head -1; true',
    holds: (text) => text.replace('(no output)', '').trim() === '',
  }),
  command('fs.kernel', 'the kernel has no files to write', {
    harmless: false,
    run: '(echo core > /proc/sys/kernel/core_pattern) 2>/dev/null && echo WROTE; (echo b > /proc/sysrq-trigger) 2>/dev/null && echo WROTE; [ -e /sys/kernel ] && echo SYS; true',
    holds: (text) => !/WROTE|SYS/.test(text),
  }),
];

const processes: Probe[] = [
  command('env.keys', 'no key of anybody is in an environment or a command line', {
    run: "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'",
    holds: (text, lab) => clean(text, lab) && !/(KEY|TOKEN|SECRET)=/.test(text),
  }),
  command('proc.own', 'only its own processes are there', {
    run: "ls /proc | grep -c '^[0-9]'",
    holds: (text) => Number(text.trim()) < 12,
  }),
  command('proc.signal', 'a process of the host cannot be signalled', {
    run: (lab) => `kill -0 ${lab.sleeper.pid} 2>/dev/null && grep -q sleep /proc/${lab.sleeper.pid}/comm && echo REACHED; true`,
    holds: (text) => !text.includes('REACHED'),
  }),
  command('proc.runner', 'a command does not see the runner that holds the credential', {
    run: "cat /proc/[0-9]*/comm | sort -u; tr '\\\\0' ' ' < /proc/1/cmdline | cut -c1-200",
    holds: (text) => !/node/.test(text) && !text.includes('driver'),
  }),
  command('proc.memory', 'the memory of another process cannot be read', {
    run: (lab) => `head -c 1 /proc/${lab.runnerPid}/mem 2>/dev/null; cat /proc/${lab.runnerPid}/maps 2>/dev/null | head -1; true`,
    holds: (text) => !/r-xp|r--p|rw-p/.test(text),
  }),
];

const perlConnect = (what: string): string =>
  `timeout 3 perl -MSocket -e '${what}; print connect($s, $a) ? "REACHED\\n" : "refused\\n"'; true`;

const network: Probe[] = [
  command('net.interfaces', 'there is no interface but its own loopback, and no route', {
    run: "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; tail -n +2 /proc/net/route",
    holds: (text) => text.trim() === 'lo',
  }),
  {
    id: 'net.tcp',
    title: 'a listener of the host on loopback is not reached',
    harmless: true,
    async holds(lab) {
      const before = lab.hits.tcp;
      const text = await lab.bash(perlConnect(`socket($s, AF_INET, SOCK_STREAM, 0); $a = sockaddr_in(${lab.tcpPort}, INADDR_LOOPBACK)`));
      return lab.hits.tcp === before && !text.includes('REACHED');
    },
  },
  {
    id: 'net.udp',
    title: 'a datagram does not arrive',
    harmless: true,
    async holds(lab) {
      const before = lab.hits.udp;
      await lab.bash(
        `perl -MSocket -e 'socket($s, AF_INET, SOCK_DGRAM, 0); send($s, "x", 0, sockaddr_in(${lab.udpPort}, INADDR_LOOPBACK))'; sleep 0.2`,
      );
      return lab.hits.udp === before;
    },
  },
  {
    id: 'net.abstract',
    title: 'a socket of the host without a file is not reached',
    harmless: true,
    async holds(lab) {
      const before = lab.hits.abstract;
      const text = await lab.bash(perlConnect(`socket($s, AF_UNIX, SOCK_STREAM, 0); $a = pack("Sa*", AF_UNIX, "\\0${lab.canary}")`));
      return lab.hits.abstract === before && !text.includes('REACHED');
    },
  },
  command('net.families', 'sockets of families that need no interface cannot be made', {
    run: 'for f in 40 38 17 44; do perl -e \'print socket($s, shift, $ARGV[0] == 38 ? 5 : 3, 0) || socket($s, shift // 40, 1, 0) ? "MADE\\n" : "refused\\n"\' $f; done',
    holds: (text) => !text.includes('MADE') && text.includes('refused'),
  }),
  command('net.vsock', 'the machine below the machine cannot be called', {
    run: 'perl -e \'print socket($s, 40, 1, 0) ? "MADE" : "refused"\'',
    holds: (text) => text.includes('refused'),
  }),
  command('net.names', 'names do not resolve', {
    harmless: false,
    run: 'getent hosts example.invalid localhost.localdomain metadata.google.internal; true',
    holds: (text) => text.replace('(no output)', '').trim() === '',
  }),
  command('net.metadata', 'the metadata address of clouds is not reached', {
    harmless: false,
    run: perlConnect('socket($s, AF_INET, SOCK_STREAM, 0); $a = sockaddr_in(80, inet_aton("169.254.169.254"))'),
    holds: (text) => text.includes('refused'),
  }),
  command('gw.hidden', 'the socket to the gateway is not there for a command', {
    run: 'ls -A /run/gw 2>/dev/null; find / -name gw.sock 2>/dev/null | head -1; cat /proc/net/unix | grep -c gw.sock; true',
    holds: (text) => text.trim() === '0',
  }),
];

const privileges: Probe[] = [
  {
    id: 'priv.user',
    title: 'neither a command nor its runner is root, inside or outside',
    harmless: true,
    async holds(lab) {
      const outside = statSync(`/proc/${lab.runnerPid}`).uid;
      return Number((await lab.bash('id -u')).trim()) !== 0 && outside !== 0;
    },
  },
  command('priv.capabilities', 'it holds no privilege, can gain none, and has a filter', {
    run: "grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | awk '{print $2}' | xargs",
    holds: (text) => text.trim() === '0000000000000000 0000000000000000 1 2',
  }),
  command('priv.kernel', 'tracing, modules, keys and other doors of the kernel are refused', {
    run: syscalls({
      ptrace: '101,0,0,0,0',
      bpf: '321,0,0,0',
      keyctl: '250,0,0,0',
      perf: '298,0,0,0,0,0',
      uffd: '323,0',
      io_uring: '425,1,0',
    }),
    holds: allRefused(6),
  }),
  command('priv.namespaces', 'no namespace and no mount can be made', {
    run: syscalls({
      unshare: '272,0x10000000',
      mount: '165,0,0,0,0,0',
      setns: '308,-1,0',
      clone3: '435,0,0',
      open_tree: '428,-1,0,0',
      fsopen: '430,0,0',
    }),
    holds: allRefused(6),
  }),
  command('priv.handles', 'files cannot be opened by handle, memory of others not by number', {
    run: syscalls({ open_by_handle_at: '304,0,0,0', process_vm_readv: '310,1,0,0,0,0,0', pidfd_getfd: '438,-1,0,0' }),
    holds: allRefused(3),
  }),
  command('priv.user-namespace', 'a command cannot become root in a namespace of its own', {
    run: 'unshare -U -r id -u 2>/dev/null || echo refused',
    holds: (text) => text.trim() === 'refused',
  }),
  command('priv.setuid', 'programs that change the user change nothing', {
    harmless: false,
    run: 'su -c id root </dev/null 2>&1 | grep -c uid=0; mount -t tmpfs x /tmp 2>/dev/null && echo MOUNTED; chroot / id 2>/dev/null; true',
    holds: (text) => !/MOUNTED|uid=0\(/.test(text) && text.trim().startsWith('0'),
  }),
  command('dev.nodes', 'there is no device of the machine, and none can be made', {
    harmless: false,
    run: 'ls /dev | xargs; for d in kvm vda sda mem fuse net; do [ -e /dev/$d ] && echo DEVICE $d; done; mknod /tmp/m b 7 0 2>/dev/null && echo DEVICE made; true',
    holds: (text) => !text.includes('DEVICE'),
  }),
  command('dev.terminal', 'nothing can be typed into a terminal', {
    run: `perl -e '$c = "x"; print ioctl(STDIN, 0x5412, $c) ? "TYPED" : "refused"' </dev/null; tty; true`,
    holds: (text) => !text.includes('TYPED') && text.includes('not a tty'),
  }),
  command('fd.inherited', 'no open file of the runner is handed down', {
    run: 'ls -l /proc/self/fd | tail -n +2 | wc -l',
    holds: (text) => Number(text.trim()) <= 4,
  }),
];

const resources: Probe[] = [
  {
    id: 'res.processes',
    title: 'a fork storm ends at its limit, and the host can go on',
    harmless: false,
    async holds(lab) {
      const text = await lab.bash(
        "perl -e '$n = 0; for (1..400) { $p = fork; last unless defined $p; if (!$p) { sleep 3; exit } $n++ } print $n'",
      );
      return Number(text.trim()) > 5 && Number(text.trim()) < LAB_LIMITS.processes && spawnSync('true').status === 0;
    },
  },
  {
    id: 'res.memory',
    title: 'a command that takes memory without end is ended, and the runner goes on',
    harmless: false,
    async holds(lab) {
      const text = await lab.bash('perl -e \'@b = (); push @b, "x" x (16 << 20) for 1..90; print "GOT ALL"\'');
      return !text.includes('GOT ALL') && (await lab.bash('echo alive')).includes('alive');
    },
  },
  {
    id: 'res.disk',
    title: 'the work folder, /tmp and shared memory are full at their limits, and the disk of the host is as it was',
    harmless: false,
    async holds(lab) {
      const free = () => statfsSync('/tmp').bavail * statfsSync('/tmp').bsize;
      const before = free();
      const fill = (dir: string) =>
        `for n in 1 2 3 4; do dd if=/dev/zero of=${dir}/big$n bs=1M count=60 2>/dev/null; done; du -sb ${dir} | cut -f1; rm -f ${dir}/big*`;
      const text = await lab.bash(['/workspace/work', '/tmp', '/dev/shm'].map(fill).join('; '));
      const sizes = numbers(text);
      return sizes.length === 3 && sizes.every((bytes) => bytes <= LAB_DISK_BYTES + 8_192) && before - free() < LAB_DISK_BYTES;
    },
  },
  {
    id: 'res.output',
    title: 'output without end is cut, and the runner stays small',
    harmless: false,
    async holds(lab) {
      const text = await lab.bash("yes 'a line of output' | head -c 300000000");
      const [runner] = lab.host.list();
      return text.length < 60_000 && (runner?.rssBytes ?? 0) < 400 * 1024 * 1024;
    },
  },
  command('res.files', 'few files can be open, and none may become large', {
    run: 'ulimit -n; ulimit -c; head -c 70000000 /dev/zero > /tmp/f 2>/dev/null; stat -c %s /tmp/f; rm -f /tmp/f',
    holds: (text) => {
      const [open = 0, core = 1, size = 0] = numbers(text);
      return open <= 256 && core === 0 && size <= 64 * 1024 * 1024;
    },
  }),
];

let marks = 0;
/** A number of seconds that no other process sleeps for. */
const mark = (): string => `7${process.pid}.${++marks}`;

const lives: Probe[] = [
  {
    id: 'life.timeout',
    title: 'a command that takes too long is ended with everything that left its group',
    harmless: true,
    async holds(lab) {
      const seconds = mark();
      await lab.bash(`setsid nohup sleep ${seconds} >/dev/null 2>&1 & sleep ${seconds}`, { timeoutSeconds: 1 });
      return gone(lab, seconds);
    },
  },
  {
    id: 'life.background',
    title: 'a process in the background ends with its command',
    harmless: true,
    async holds(lab) {
      const seconds = mark();
      const text = await lab.bash(`(setsid nohup sleep ${seconds} >/dev/null 2>&1 &); echo started`);
      return text.includes('started') && gone(lab, seconds);
    },
  },
  {
    id: 'life.kill',
    title: 'kill -9 of a runner leaves nothing of it running',
    harmless: false,
    async holds(lab) {
      const seconds = mark();
      const runner = await lab.startRunner();
      void lab.bash(`setsid sleep ${seconds} & sleep ${seconds}`, { runner, timeoutSeconds: 60 });
      while (lab.sleepers(seconds) < 2) await new Promise((resolve) => setImmediate(resolve));
      const pid = lab.host.list().find(({ sandboxId }) => sandboxId === runner.sandboxId)?.pid;
      process.kill(pid ?? 0, 'SIGKILL');
      return gone(lab, seconds);
    },
  },
  {
    id: 'life.zombies',
    title: 'runners that come and go leave no dead process behind',
    harmless: false,
    async holds(lab) {
      const before = lab.zombies();
      for (let nth = 0; nth < 3; nth++) {
        const runner = await lab.startRunner();
        await lab.bash('true', { runner });
        await lab.host.end(runner.sandboxId);
      }
      return lab.zombies() <= before;
    },
  },
  {
    id: 'life.reuse',
    title: 'the next runner finds nothing of the one before it',
    harmless: false,
    async holds(lab) {
      await lab.bash(`for d in /workspace/work /tmp /dev/shm; do echo ${lab.canary} > $d/left; done`);
      const runner = await lab.startRunner();
      const text = await lab.bash('cat /workspace/work/left /tmp/left /dev/shm/left; true', { runner });
      await lab.host.end(runner.sandboxId);
      return clean(text, lab);
    },
  },
  {
    id: 'life.turn',
    title: 'the next turn of the same runner finds nothing of the turn before it in its work folder and in /tmp',
    harmless: false,
    async holds(lab) {
      await lab.bash(`for d in /workspace/work /tmp; do echo ${lab.canary} > $d/left; done`);
      return clean(await lab.bash('cat /workspace/work/left /tmp/left; true'), lab);
    },
  },
];

/** Waits a moment for what was killed to be gone. */
async function gone(lab: IsolationLab, seconds: string): Promise<boolean> {
  const untilMs = performance.now() + 3_000;
  while (lab.sleepers(seconds) > 0) {
    if (performance.now() > untilMs) return false;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return true;
}

export const PROBES: readonly Probe[] = [...files, ...processes, ...network, ...privileges, ...resources, ...lives];
