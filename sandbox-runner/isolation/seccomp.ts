/**
 * Owns: the system call filters of the two layers of a sandbox, as classic BPF programs that bwrap loads. An empty network namespace alone is
 * not "no network": a VSOCK socket could still be opened in one. Pure.
 * Does not own: loading them (layers.ts says where they go).
 * Only x86-64 has a table of numbers here. Elsewhere there is no filter, and then there is no isolation.
 */

/** `runner` may create the namespaces of a command's layer; `tool` may create nothing. */
export type FilteredLayer = 'runner' | 'tool';

const AUDIT_ARCH_X86_64 = 0xc000003e;
/** Numbers from here on are the x32 variant of the same calls: another way to each of them. */
const X32_BIT = 0x40000000;

/** Offsets in the kernel's `struct seccomp_data`. Low words: no argument that is looked at has a high one. */
const AT = { number: 0, architecture: 4, argument0: 16, argument1: 24 } as const;

const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;
const RETURN = { allow: 0x7fff0000, kill: 0x80000000, errno: (errno: number) => 0x00050000 | errno } as const;

/** Refused in both layers: tracing, kernel modules and keys, clocks, raw I/O, kernel interfaces with a long history of faults. */
const REFUSED = {
  ptrace: 101,
  syslog: 103,
  uselib: 134,
  vhangup: 153,
  modify_ldt: 154,
  adjtimex: 159,
  acct: 163,
  settimeofday: 164,
  swapon: 167,
  swapoff: 168,
  reboot: 169,
  iopl: 172,
  ioperm: 173,
  create_module: 174,
  init_module: 175,
  delete_module: 176,
  quotactl: 179,
  lookup_dcookie: 212,
  clock_settime: 227,
  kexec_load: 246,
  add_key: 248,
  request_key: 249,
  keyctl: 250,
  perf_event_open: 298,
  fanotify_init: 300,
  name_to_handle_at: 303,
  open_by_handle_at: 304,
  clock_adjtime: 305,
  process_vm_readv: 310,
  process_vm_writev: 311,
  kcmp: 312,
  finit_module: 313,
  kexec_file_load: 320,
  bpf: 321,
  userfaultfd: 323,
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  pidfd_getfd: 438,
} as const;

/** Refused to commands as well: whatever makes or changes a namespace or a mount. */
const REFUSED_TO_TOOLS = {
  pivot_root: 155,
  chroot: 161,
  mount: 165,
  umount2: 166,
  sethostname: 170,
  setdomainname: 171,
  unshare: 272,
  setns: 308,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  mount_setattr: 442,
} as const;

const SOCKET = 41;
const CLONE = 56;
const CLONE3 = 435;
const IOCTL = 16;
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: what programs open without harm where there is no network. */
const SOCKET_FAMILIES = [1, 2, 10, 16];
/** Every CLONE_NEW… flag but CLONE_NEWTIME, which clone cannot take. */
const NAMESPACE_FLAGS = 0x7e020000;
/** Typing into the terminal of somebody else. */
const TERMINAL_INPUT = [0x5412, 0x541c];

const LOAD_WORD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN_VALUE = 0x06;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

const load = (offset: number): Instruction => [LOAD_WORD, 0, 0, offset];
const answer = (value: number): Instruction => [RETURN_VALUE, 0, 0, value];

/** `then` when the loaded word meets the test, else what comes after it. */
function when(code: number, value: number, then: readonly Instruction[]): Instruction[] {
  return [[code, 0, then.length, value], ...then];
}

const isNumber = (number: number, then: readonly Instruction[]): Instruction[] => when(JUMP_IF_EQUAL, number, then);

/** Refuses a call by its number. */
const refuse = (number: number, errno: number = EPERM): Instruction[] => isNumber(number, [answer(RETURN.errno(errno))]);

/** `socket`: a family of the list, or none. */
function socketRule(): Instruction[] {
  const allowed = SOCKET_FAMILIES.flatMap((family) => isNumber(family, [answer(RETURN.allow)]));
  return isNumber(SOCKET, [load(AT.argument0), ...allowed, answer(RETURN.errno(EAFNOSUPPORT))]);
}

function ioctlRule(): Instruction[] {
  const refused = TERMINAL_INPUT.flatMap((request) => isNumber(request, [answer(RETURN.errno(EPERM))]));
  return isNumber(IOCTL, [load(AT.argument1), ...refused, answer(RETURN.allow)]);
}

/** `clone3` hides its flags in memory, where no filter sees them: the C library falls back to `clone` when there is none. */
function namespaceRules(): Instruction[] {
  const withFlags = when(JUMP_IF_ANY_BIT, NAMESPACE_FLAGS, [answer(RETURN.errno(EPERM))]);
  return [...refuse(CLONE3, ENOSYS), ...isNumber(CLONE, [load(AT.argument0), ...withFlags, answer(RETURN.allow)])];
}

function program(layer: FilteredLayer): Instruction[] {
  const numbers = [...Object.values(REFUSED), ...(layer === 'tool' ? Object.values(REFUSED_TO_TOOLS) : [])];
  return [
    load(AT.architecture),
    [JUMP_IF_EQUAL, 1, 0, AUDIT_ARCH_X86_64],
    answer(RETURN.kill),
    load(AT.number),
    ...when(JUMP_IF_AT_LEAST, X32_BIT, [answer(RETURN.errno(EPERM))]),
    ...numbers.flatMap((number) => refuse(number)),
    ...(layer === 'tool' ? namespaceRules() : []),
    ...socketRule(),
    ...ioctlRule(),
    answer(RETURN.allow),
  ];
}

const INSTRUCTION_BYTES = 8;

/** The filter as the bytes of `struct sock_filter[]`; null on a processor without a table. */
export function seccompFilter(layer: FilteredLayer, architecture: string = process.arch): Buffer | null {
  if (architecture !== 'x64') return null;
  const instructions = program(layer);
  const bytes = Buffer.alloc(instructions.length * INSTRUCTION_BYTES);
  for (const [index, [code, ifTrue, ifFalse, value]] of instructions.entries()) {
    const at = index * INSTRUCTION_BYTES;
    bytes.writeUInt16LE(code, at);
    bytes.writeUInt8(ifTrue, at + 2);
    bytes.writeUInt8(ifFalse, at + 3);
    bytes.writeUInt32LE(value >>> 0, at + 4);
  }
  return bytes;
}
