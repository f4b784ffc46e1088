export { type Certificates, makeCertificates } from "./certificates.ts";
export { type Ensemble, startEnsemble } from "./ensemble.ts";
export { BENCH_JVM_OPTIONS } from "./jvm.ts";
export { type KazooProcess, kazoo, startKazoo } from "./kazoo.ts";
export { freePort } from "./ports.ts";
export { type Direction, startProxy, type TcpProxy } from "./proxy.ts";
export { requireZooKeeper } from "./require.ts";
export { type ServerOptions, startZooKeeper, type ZooKeeperServer } from "./server.ts";
