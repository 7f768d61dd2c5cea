/**
 * Owns: how the page is built. Everything is a file of its own (`assetsInlineLimit: 0`): the content security policy allows no inlined font or script.
 */
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Where `npm start` listens. Only used by `vite` itself, for work on the page with reloading. */
const server = 'http://127.0.0.1:8080';

export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  plugins: [react()],
  // Its browser form parses KaTeX's words for a broken formula, which carry a style attribute, with the DOM: the policy forbids that.
  resolve: { alias: { 'hast-util-from-html-isomorphic': fileURLToPath(import.meta.resolve('hast-util-from-html-isomorphic')) } },
  build: {
    outDir: '../../dist/web',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    sourcemap: false,
    target: 'es2023',
    // Minified, before compression. The budget of the first load is 350 kB compressed.
    chunkSizeWarningLimit: 1_000,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { '/session': server, '/workspaces': server } },
});
