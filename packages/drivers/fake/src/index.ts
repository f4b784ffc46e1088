export { Clouds, type OpenJournal } from "./cloud/clouds.ts";
export { CloudError } from "./cloud/errors.ts";
export { type CloudOptions, FakeCloud, type NewServer } from "./cloud/fake-cloud.ts";
export type { ImageEvent } from "./cloud/images.ts";
export { type Journal, readJournal } from "./cloud/journal.ts";
export type { CloudEvent, FakeServer, Fate, Status } from "./cloud/servers.ts";
export type {
  FakeLabelOwn,
  FakePoolConfig,
  FakePoolOwn,
  FakeProviderConfig,
  FakeProviderOwn,
} from "./config.ts";
export { fakeConfig } from "./config.ts";
export { createFakeDriver, type FakeDriverOptions } from "./driver.ts";
export { fakeDriver } from "./edge/default.ts";
export { FileJournal } from "./edge/file-journal.ts";
export { type ErrorRates, type FakeKnobs, type FaultCounts, INSTANT, type Latency } from "./knobs.ts";
