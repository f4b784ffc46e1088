import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { scriptOf } from "../../tools/build/page.ts";
import { patient } from "../patience.ts";

/** Far beyond what each takes on a busy machine, milliseconds: for what hangs. */
const COMMAND_MS = patient(180_000);
/** `ulimits`: podman's own are beyond those of a root without CAP_SYS_RESOURCE. crun refuses a mix of cgroups v1 and v2, which runc takes. */
const ENGINE = `[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
`;
/** The fake cloud's machines outlive the process. */
const JOURNAL = "journal: /var/lib/nodeyard/cloud.journal";
const SERVERS = "zookeeper-servers: [{host: 127.0.0.1, port: 2181}]\n";
const HARDENED = "--read-only --cap-drop all --security-opt no-new-privileges --stop-timeout 30";
const READY = `/usr/lib/nodeyard/node -e 'fetch("http://127.0.0.1:8005/ready").then((r) => process.exit(r.ok ? 0 : 1))'`;

/** Runs the archives of images in `folder`, as the pages of `root` say. Rejects with the output of what failed. */
export async function checkImages(root: string, folder: string, say: (text: string) => void): Promise<void> {
  const env = {
    ...process.env,
    CONTAINERS_CONF: join(folder, "containers.conf"),
    CONTAINERS_STORAGE_CONF: join(folder, "storage.conf"),
  };
  writeFileSync(env.CONTAINERS_CONF, ENGINE);
  const store = `[storage]\ndriver = "overlay"\ngraphroot = "${folder}/store"\nrunroot = "${folder}/run"\n`;
  writeFileSync(env.CONTAINERS_STORAGE_CONF, store);
  const run = async (script: string) => {
    const words = ["--norc", "-euo", "pipefail", "-c", script];
    return (
      await promisify(execFile)("bash", words, { cwd: folder, env, timeout: COMMAND_MS })
    ).stdout.trim();
  };
  const expectStopped = async (name: string) => {
    const code = await run(`podman inspect --format '{{.State.ExitCode}}' ${name}`);
    if (code !== "0") throw new Error(`${name} stopped with exit code ${code}`);
  };

  const version = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version as string;
  const fake = readFileSync(join(root, "examples/fake.yaml"), "utf8");
  try {
    say("runs everything in one container, and hands out a node");
    writeFileSync(join(folder, "nodepool.yaml"), fake.replace("    fake:", `    fake:\n      ${JOURNAL}`));
    await run(scriptOf(join(root, "docs/how-to/install.md"), "podman"));
    await expectStopped("nodeyard");

    say("keeps the lease when the container is replaced");
    await run("podman rm nodeyard");
    await run(`podman run --detach --name nodeyard ${HARDENED} --volume nodeyard:/var/lib/nodeyard \
      --volume ./nodepool.yaml:/etc/nodeyard/nodepool.yaml:ro nodeyard:${version}`);
    await run(
      "until podman exec nodeyard nodeyard list; do sleep 1; done | tail --lines=20 | grep fake-small.*in-use",
    );

    say("runs a launcher in a container of its own, which follows its mounted configuration");
    const config = join(folder, "config");
    // As Kubernetes mounts a ConfigMap: it replaces a link to a folder.
    mkdirSync(join(config, "1"), { recursive: true });
    mkdirSync(join(config, "2"));
    writeFileSync(join(config, "1/nodepool.yaml"), SERVERS + fake);
    writeFileSync(join(config, "2/nodepool.yaml"), SERVERS + fake.replaceAll("fake-large", "fake-huge"));
    symlinkSync("1", join(config, "data"));
    symlinkSync("data/nodepool.yaml", join(config, "nodepool.yaml"));
    await run("podman load --input nodeyard-launcher_*.oci.tar");
    await run(`podman run --detach --name tree nodeyard:${version} \
      -c /etc/nodeyard/nodepool.yaml up --listen 127.0.0.1:2181`);
    await run(`podman run --detach --name launcher --network container:tree ${HARDENED} \
      --volume ./config:/etc/nodeyard:ro nodeyard-launcher:${version}`);
    await run(`until podman exec launcher ${READY}; do sleep 1; done`);
    const request = "podman exec launcher nodeyard -c /etc/nodeyard/nodepool.yaml request";
    await run(`${request} fake-large --wait`);
    symlinkSync("2", join(config, "next"));
    renameSync(join(config, "next"), join(config, "data"));
    await run(`until ${request} fake-huge --wait; do sleep 1; done`);
    await run("podman stop launcher");
    await expectStopped("launcher");

    if ((await run("ls")).includes("nodeyard-builder_")) {
      say("has a builder with diskimage-builder");
      await run("podman load --input nodeyard-builder_*.oci.tar");
      await run(`podman run --rm --entrypoint disk-image-create nodeyard-builder:${version} --version`);
      await run(`podman run --rm ${HARDENED} nodeyard-builder:${version} builder --help`);
    }
  } catch (error) {
    const logs = "for name in nodeyard tree launcher; do podman logs --tail 40 $name || true; done 2>&1";
    throw new Error(await run(logs).catch(String), { cause: error });
  } finally {
    // Twice, since one that lends its network to another is refused at first.
    await run("podman rm --all --force --time 0 || podman rm --all --force --time 0").catch(say);
    // podman leaves the mount to the end of the machine.
    await run("umount store/overlay || true").catch(say);
  }
}
