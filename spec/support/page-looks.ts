/**
 * Owns: the check of one state of the page: in light and dark nothing grave for axe-core, narrow and wide nothing beside the column, and a
 * picture of each for people (spec/web/shots).
 */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { shoot } from './browser.ts';
import { graveFindings, sticksOut } from './page-checks.ts';

export const DESK = { width: 1_120, height: 780 };
export const PHONE = { width: 360, height: 740 };

export async function looksRight(page: Page, state: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await graveFindings(page), `${state}, ${colorScheme}`).to.deep.equal([]);
    for (const [name, size] of [
      ['360', PHONE],
      ['wide', DESK],
    ] as const) {
      await page.setViewportSize(size);
      expect(await sticksOut(page), `${state}, ${name}`).to.deep.equal([]);
      await shoot(page, `${state}-${colorScheme}-${name}`);
    }
  }
}
