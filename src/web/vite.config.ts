/**
 * Owns: how the page is built. Everything is a file of its own (`assetsInlineLimit: 0`): the content security policy allows no inlined font or script.
 */
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** Where `npm start` listens. Only used by `vite` itself, for work on the page with reloading. */
const server = 'http://127.0.0.1:8080';
/** What a browser fetches before it can show the page, compressed. */
const firstLoadMaxBytes = 350_000;

/** The operator page, the panel and the panel's loader, which the chat does not load. */
const OTHER_PAGE = /^(ops\/|embed\/|embed\.js$|assets\/(ops|embed)-)/;

/** What other sites include has a name that stays, and is a function that runs: a classic script would leave its names on their pages. */
const LOADER = { entry: 'embed-loader', file: 'embed.js' };

/** Prints what the first load weighs, and fails the build when that is too much. What is imported later does not count. */
function firstLoadBudget(): Plugin {
  return {
    name: 'first-load-budget',
    generateBundle(_options, bundle) {
      const first = new Set<string>();
      const add = (name: string) => {
        const file = bundle[name];
        if (file === undefined || first.has(name)) return;
        first.add(name);
        if (file.type === 'chunk') file.imports.forEach(add);
      };
      for (const [name, file] of Object.entries(bundle)) {
        if (OTHER_PAGE.test(name)) continue;
        if ((file.type === 'chunk' && file.isEntry) || name.endsWith('.css') || name.endsWith('.html')) add(name);
      }
      const contents = [...first].map((name) => (bundle[name]?.type === 'chunk' ? bundle[name].code : bundle[name]?.source) ?? '');
      const bytes = contents.reduce((sum, content) => sum + gzipSync(content).length, 0);
      this.info(`first load: ${(bytes / 1_000).toFixed(1)} kB compressed of at most ${firstLoadMaxBytes / 1_000} kB`);
      if (bytes > firstLoadMaxBytes) this.error('The first load is too large. Import lazily what a first page does not need.');
    },
  };
}

export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  plugins: [react(), firstLoadBudget()],
  // Its browser form parses KaTeX's words for a broken formula, which carry a style attribute, with the DOM: the policy forbids that.
  resolve: { alias: { 'hast-util-from-html-isomorphic': fileURLToPath(import.meta.resolve('hast-util-from-html-isomorphic')) } },
  build: {
    outDir: '../../dist/web',
    emptyOutDir: true,
    rollupOptions: {
      input: {
        index: `${import.meta.dirname}/index.html`,
        ops: `${import.meta.dirname}/ops/index.html`,
        embed: `${import.meta.dirname}/embed/index.html`,
        [LOADER.entry]: `${import.meta.dirname}/embed/loader.ts`,
      },
      output: {
        entryFileNames: ({ name }) => (name === LOADER.entry ? LOADER.file : 'assets/[name]-[hash].js'),
        banner: ({ name }) => (name === LOADER.entry ? '(() => {' : ''),
        footer: ({ name }) => (name === LOADER.entry ? '})();' : ''),
      },
    },
    assetsInlineLimit: 0,
    sourcemap: false,
    target: 'es2023',
    // Minified, before compression. The budget of the first load is above.
    chunkSizeWarningLimit: 1_000,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { '/auth': server, '/session': server, '/workspaces': server } },
});
