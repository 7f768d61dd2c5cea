/**
 * Owns: how the page is built. Everything is a file of its own (`assetsInlineLimit: 0`): the content security policy allows no inlined font or script.
 */
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Where `npm start` listens. Only used by `vite` itself, for work on the page with reloading. */
const server = 'http://127.0.0.1:8080';

export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  plugins: [react()],
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
