/**
 * Owns: giving mocha two of its own reporters at once: spec for a person to watch, JSON (to a file) for tools/test.ts to count.
 * Does not own: counting.
 */
import Mocha from 'mocha';

export default class SpecAndJson {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    new Mocha.reporters.Spec(runner, options);
    new Mocha.reporters.JSON(runner, options);
  }
}
