import { existsSync } from "node:fs";

const JARS = "/usr/share/java";

/**
 * Single jars instead of the whole folder: the JVM opens fewer files, and Debian's `netty-all.jar`, which lacks the
 * codec classes that TLS needs, cannot come before the single Netty jars.
 */
const CLASS_PATH = [
  "netty-buffer",
  "netty-codec",
  "netty-common",
  "netty-handler",
  "netty-resolver",
  "netty-transport",
  "zookeeper",
  "zookeeper-jute",
  "slf4j-api",
  "slf4j-log4j12",
  "log4j-1.2",
  "metrics-core",
  "snappy-java",
  "commons-cli",
  "commons-io",
  "jackson-annotations",
  "jackson-core",
  "jackson-databind",
].map((name) => `${JARS}/${name}.jar`);

export const MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

/** Options that make the JVM start fast (a quarter of a second) rather than run fast for hours. */
export const JVM_OPTIONS: readonly string[] = [
  "-Xmx512m",
  "-Xshare:auto",
  "-XX:TieredStopAtLevel=1",
  "-XX:+UseSerialGC",
  "-Djava.net.preferIPv4Stack=true",
  "-cp",
  CLASS_PATH.join(":"),
];

/** The same for benches, where the server's own speed counts. */
export const BENCH_JVM_OPTIONS: readonly string[] = [
  "-Xmx1024m",
  "-Djava.net.preferIPv4Stack=true",
  "-cp",
  CLASS_PATH.join(":"),
];

/** Jars that are not installed. */
export function missingJars(): readonly string[] {
  return CLASS_PATH.filter((jar) => !existsSync(jar));
}
