export { fieldsOf, keyOf, oldBody, type Query } from "./lists/body.ts";
export { type Known, type OldList, oldLists } from "./lists/lists.ts";
export { migrationReport } from "./move/report.ts";
export * from "./move/survey.ts";
export * from "./move/takeover.ts";
export { statsdServer, UdpSink } from "./statsd/edge/udp-sink.ts";
export type { StatsdSample } from "./statsd/lines.ts";
export { type LineSink, StatsdReporter } from "./statsd/reporter.ts";
export { gaugeSamples, oldKeys } from "./statsd/samples.ts";
