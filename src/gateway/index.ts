/** The door of src/gateway: server.ts builds a gateway from these. */
export { checkBaseUrl, guardedLookup } from './base-url.ts';
export type { CallBounds } from './calls-in-flight.ts';
export { createGateway, type Gateway, type GatewayOptions, type GatewayStats } from './gateway.ts';
export { DEMO, type EnvironmentProvider, type ModelBounds, type ProviderConfig } from './model-config.ts';
export { Providers, type ProvidersOptions } from './providers.ts';
