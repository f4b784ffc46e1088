export { type Clock, deadline, sleep, type Timer } from "./clock.ts";
export { type ServiceState, serviceReporter } from "./edge/service-manager.ts";
export { systemClock, systemRandom } from "./edge/system.ts";
export { errorClass, messageOf, NodeyardError } from "./errors.ts";
export { Gate } from "./gate.ts";
export { Heap } from "./heap.ts";
export { backoff, hexId, jitter, type Random, seededRandom } from "./random.ts";
export { type Moment, StoredTimes } from "./stored-times.ts";
export { TimeStandsStill, VirtualClock } from "./virtual-clock.ts";
