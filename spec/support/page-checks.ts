/**
 * Owns: what can be measured of any page: what leaves the window sideways, what could run or fetch, what axe-core finds.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type axe from 'axe-core';
import type { Frame, Page } from 'playwright-core';

const AXE = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'));
const GRAVE = ['serious', 'critical'];

/** Elements that leave the window sideways without a block around them that scrolls, so that a part of them is lost; empty: it all fits. */
export function sticksOut(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const isOut = (element: Element): boolean => {
      const box = element.getBoundingClientRect();
      return box.width > 0 && (box.left < -1 || box.right > width + 1);
    };
    const canScroll = (element: Element): boolean => ['auto', 'scroll'].includes(getComputedStyle(element).overflowX);
    const isLost = (element: Element): boolean => {
      for (let around = element.parentElement; around !== null && around.tagName !== 'MAIN'; around = around.parentElement) {
        if (canScroll(around)) return isOut(around);
      }
      return true;
    };
    const isSeen = (element: Element): boolean =>
      element.checkVisibility({ visibilityProperty: true }) && !element.matches('.visually-hidden, .skip-link');
    const isCut = (element: Element): boolean => isSeen(element) && isOut(element) && isLost(element);
    const cut = new Set([...document.body.querySelectorAll('*')].filter(isCut));
    const lost = [...cut].filter(({ parentElement }) => parentElement === null || !cut.has(parentElement));
    const scrolling = [...document.querySelectorAll('html, body, main')].filter((box) => box.scrollWidth > box.clientWidth);
    return [...scrolling, ...lost].map(({ tagName, className, textContent }) => `${tagName} ${className}: ${textContent?.slice(0, 40)}`);
  });
}

/** Whatever in messages could run, fetch or leave to something that is no web page; empty when messages are only words. */
export function liveParts(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const parts = [...document.querySelectorAll('.bubble, .bubble *, .markdown, .markdown *')].filter(
      (part) => part.closest('.code-header') === null,
    );
    const forbidden = 'script, style, link, meta, base, img, svg, iframe, object, embed, form, video, audio, input:not([type=checkbox])';
    const isLive = (part: Element): boolean =>
      part.matches(forbidden) ||
      part.getAttributeNames().some((name) => name.startsWith('on') || name === 'style' || name === 'srcdoc') ||
      (part instanceof HTMLAnchorElement && !/^(https?:|mailto:|#|\/\/)/.test(part.getAttribute('href') ?? '#'));
    return parts.filter(isLive).map((part) => part.outerHTML.slice(0, 200));
  });
}

/** Serious and critical findings of axe-core, one line each. */
export async function graveFindings(page: Page | Frame): Promise<string[]> {
  const loaded = await page.evaluate(() => 'axe' in globalThis);
  if (!loaded) await page.evaluate(readFileSync(AXE, 'utf8'));
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run({ resultTypes: ['violations'] }));
  return violations
    .filter(({ impact }) => GRAVE.includes(impact ?? ''))
    .flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.target.join(' ')}: ${node.failureSummary}`));
}
