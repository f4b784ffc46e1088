import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { connect } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { patience } from "../patience.ts";
import { adopt } from "../zookeeper/children.ts";
import { freePort } from "../zookeeper/ports.ts";

/** Nothing of it has to survive, so nothing is waited for at the disk; whoever reaches loopback is trusted. */
const OPTIONS = [
  "--skip-grant-tables --skip-networking=0 --skip-name-resolve --skip-log-bin --performance-schema=0",
  "--innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --innodb-flush-method=nosync --innodb-log-file-size=32M",
  "--innodb-buffer-pool-size=64M --character-set-server=utf8mb3 --collation-server=utf8mb3_general_ci",
]
  .join(" ")
  .split(" ");

/** A server of MariaDB on loopback. */
export interface MariaDb {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts Debian's MariaDB in `folder`, with one empty database, and resolves when it takes connections. */
export async function startMariaDb(folder: string, database: string): Promise<MariaDb> {
  const port = await freePort();
  const data = join(folder, "mysql");
  // The server makes no system tables, and needs none without grants; a folder is a database.
  mkdirSync(join(data, database), { recursive: true });
  const child = spawn(
    "/usr/sbin/mariadbd",
    [
      "--no-defaults",
      `--user=${userInfo().username}`,
      `--datadir=${data}`,
      `--tmpdir=${folder}`,
      "--bind-address=127.0.0.1",
      `--port=${port}`,
      `--socket=${join(folder, "mysql.sock")}`,
      `--pid-file=${join(folder, "mysql.pid")}`,
      ...OPTIONS,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-20_000);
  });
  const ended = adopt(child);
  const stop = () => {
    child.kill("SIGKILL");
    return ended;
  };
  for (let attempt = 0; attempt < 600 * patience(); attempt++) {
    if (child.exitCode !== null) break;
    if (await accepts(port)) return { port, stop };
    await sleep(50);
  }
  await stop();
  throw new Error(`MariaDB does not serve on port ${port}:\n${log}`);
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
