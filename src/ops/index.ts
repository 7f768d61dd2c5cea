/** The door of src/ops. */
export type { GaugeSources } from './gauges.ts';
export { createMetrics, type Metrics, type RecoveryCause, type RequestSample, type TurnSample } from './metrics.ts';
export {
  capacityPart,
  databasePart,
  drainingPart,
  environmentModelPart,
  listeningPart,
  migrationsPart,
  notePart,
  type Part,
} from './parts.ts';
