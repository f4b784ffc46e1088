import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** What else makes a container of the same root, in the machine's own network, which is less work. */
export interface Other {
  readonly name: string;
  /** Of its sshd, on loopback. */
  readonly port: number;
  start(): void;
  stop(): Promise<void>;
}

/** Of the file in the root; so neither makes a key, as a sliver does at each start. */
const KEY = "/etc/ssh/bench_key";

/** systemd-nspawn with a snapshot of the root, and podman with an image of it. `work`: a folder that is not the pool's. */
export function others(root: string, work: string): readonly Other[] {
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", join(root, KEY)]);
  return [nspawn(root), podman(root, work)];
}

function sshd(port: number): string[] {
  const words = `exec /usr/sbin/sshd -D -e -h ${KEY} -p ${port} -o UsePAM=no -o PidFile=none -o ListenAddress=127.0.0.1`;
  return ["/bin/sh", "-c", `mkdir -p /run/sshd; ${words}`];
}

function nspawn(root: string): Other {
  const port = 22_751;
  let child: ChildProcess | undefined;
  // A snapshot, as it is on btrfs, with ids of its own that are mapped.
  const words = ["--quiet", "--register=no", "--keep-unit", "--ephemeral", "--console=pipe"];
  const ids = ["--private-users=1862270976:65536", "--private-users-ownership=map"];
  return {
    name: "systemd-nspawn",
    port,
    start: () => {
      child = spawn("systemd-nspawn", [...words, ...ids, `--directory=${root}`, ...sshd(port)], {
        stdio: ["ignore", "ignore", "inherit"],
      });
    },
    stop: async () => {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    },
  };
}

function podman(root: string, work: string): Other {
  const port = 22_752;
  const place = ["--root", join(work, "containers"), "--runroot", join(work, "containers-run")];
  const run = (...words: string[]) =>
    execFileSync("podman", [...place, "--runtime", "runc", "--cgroup-manager", "cgroupfs", ...words], {
      stdio: ["ignore", "ignore", "inherit"],
    });
  const archive = join(work, "root.tar");
  execFileSync("tar", ["-c", "--numeric-owner", "-f", archive, "-C", root, "."]);
  run("import", "--quiet", archive, "bench");
  // Its own defaults ask for more than root may raise on some machines.
  const limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=100:100"];
  return {
    name: "podman",
    port,
    start: () => run("run", "--detach", "--network=host", "--name=bench", ...limits, "bench", ...sshd(port)),
    stop: async () => {
      run("rm", "--force", "--time=0", "bench");
    },
  };
}
