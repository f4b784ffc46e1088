/**
 * `npm run test:debian`: builds the Debian packages (`-- FOLDER`: takes those that are in it) and installs them as docs/how-to/install.md says, in a
 * Debian whose systemd runs; hands out a node, upgrades while it is in use, runs each unit, removes and purges. Needs root, debhelper, lintian,
 * mmdebstrap and systemd-nspawn.
 */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { scriptOf } from "../../tools/build/page.ts";
import { patience } from "../patience.ts";
import { Container } from "./container.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const PAGE = join(ROOT, "docs/how-to/install.md");
/** The fake cloud's machines outlive the process. */
const JOURNAL = "journal: /var/lib/nodeyard/cloud.journal";
const SERVERS = "zookeeper-servers: [{host: 127.0.0.1, port: 2181}]";
/** Beside the program. */
const INSTALLED = [
  "/usr/share/man/man8/nodeyard-launcher.8.gz",
  "/usr/share/bash-completion/completions/nodeyard",
  "/usr/share/zsh/vendor-completions/_nodeyard",
  "/usr/share/fish/vendor_completions.d/nodeyard.fish",
  "/usr/share/nodeyard/monitoring/nodeyard.rules.yaml",
  "/usr/share/nodeyard/monitoring/nodeyard.dashboard.json",
  "/usr/share/doc/nodeyard/alerts.md.gz",
  "/usr/share/doc/nodeyard/html/docs/README.html",
  "$(nodeyard docs install)",
];
/** A build that needs what a build gets: namespaces of its own, with the processes in them, as root of them. */
const BUILD = "test $$ -lt 20 && test -d /proc/1 && test $(id -u) = 0 && echo image >$DIB_IMAGE_FILENAME.raw";
const IMAGES = `${SERVERS}
images-dir: /var/lib/nodeyard-builder/images
build-log-dir: /var/log/nodeyard/builds
diskimages:
  - {name: tiny, formats: [raw], build-command: [/bin/sh, -c, '${BUILD}']}
labels: []
providers: []
`;
/** Of a sliver manager that has no document: it makes no slivers. */
const SLIVERD = {
  node: "node-1",
  backEnd: "account",
  stateFolder: "/var/lib/nodeyard-sliverd",
  keySet: { v: 1, version: 1, keys: [{ kid: "k1", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }] },
};

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "nodeyard-debian-"));
const release = join(folder, "release");
const given = process.argv[2];
const root = join(folder, "root");
let container: Container | undefined;
const bootstrapped = run("mmdebstrap", ["--variant=minbase", "--include=systemd-sysv", "bookworm", root]);
// Not unhandled while the packages are built.
bootstrapped.catch(() => {});
try {
  const made = scriptOf(PAGE, "deb").replace("--deb release", `--deb ${join(release, "new")}`);
  if (given === undefined) await run("bash", ["-euo", "pipefail", "-c", made], { cwd: ROOT });
  else cpSync(given, join(release, "new"), { recursive: true });
  const files = readdirSync(join(release, "new")).map((name) => join(release, "new", name));
  for (const file of files) say(`built ${basename(file)}`);
  const linted = lint(files);
  linted.catch(() => {});
  await newer(join(release, "new"), join(release, "newer"));
  await bootstrapped;
  container = await Container.boot(root, release);
  await check(container);
  await linted;
  say("lintian has no error and no warning");
  await container.close();
} catch (error) {
  console.error(await container?.run("journalctl --no-pager --lines=60 --unit='nodeyard*'").catch(() => ""));
  console.error(error);
  process.exitCode = 1;
} finally {
  await container?.close();
  // It mounts /proc and /sys below the folder, and takes them away only at its end.
  await bootstrapped.catch(() => {});
  // A container that has ended may hold its mounts for a moment.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 1_000 });
}

/** Rejects with what Debian's policy does not allow, beside what `packaging/debian/*.lintian-overrides` give a reason for. */
async function lint(files: readonly string[]): Promise<void> {
  const words = ["--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", ...files];
  await run("lintian", words).catch((error: { readonly stdout?: string; readonly message: string }) => {
    throw new Error(`lintian: ${error.stdout || error.message}`, { cause: error });
  });
}

/** A package of the version after, whose configuration file is another one. */
async function newer(from: string, to: string): Promise<void> {
  const tree = join(folder, "tree");
  await run("dpkg-deb", ["--raw-extract", join(from, "nodeyard_0.1.0_amd64.deb"), tree]);
  const control = join(tree, "DEBIAN/control");
  writeFileSync(control, readFileSync(control, "utf8").replace("Version: 0.1.0", "Version: 0.1.1"));
  writeFileSync(join(tree, "etc/nodeyard/nodepool.yaml"), "labels: []\nproviders: []\n");
  mkdirSync(to);
  await run("dpkg-deb", ["-Zzstd", "-z1", "--build", tree, to]);
  rmSync(tree, { recursive: true });
}

async function check(host: Container): Promise<void> {
  say("installs, and the service starts");
  await host.run(scriptOf(PAGE, "debian"), "/release/new");
  await host.run(INSTALLED.map((path) => `test -e ${path}`).join("\n"));
  await host.run("ln -s $(command -v nodeyard) /usr/bin/nodepool-builder");
  await host.run("nodepool-builder --version; nodepool-builder --help | grep -e --build-workers");
  await host.run("rm /usr/bin/nodepool-builder");
  await host.run(`cd /etc/nodeyard; sed -i 's|^    fake:|&\\n      ${JOURNAL}|' nodepool.yaml`);
  await host.run("systemctl restart nodeyard");
  const { lease, nodes } = JSON.parse(await host.run("nodeyard request fake-large --wait --json"));
  const before = await host.run("systemctl show --property=MainPID nodeyard");

  say("reloads");
  await host.run(scriptOf(PAGE, "reload"));
  await until(() => host.run("journalctl --unit nodeyard | grep 'reloading the configuration'"));
  expect(await host.run("systemctl show --property=MainPID nodeyard"), before);

  say("upgrades while a node is in use, and keeps the configuration");
  await host.run(scriptOf(PAGE, "upgrade"), "/release/newer");
  expect(await host.run("dpkg-query --show nodeyard"), "nodeyard\t0.1.1\n");
  if ((await host.run("systemctl show --property=MainPID nodeyard")) === before)
    throw new Error("the upgrade did not restart the service");
  await host.run(`grep '${JOURNAL}' /etc/nodeyard/nodepool.yaml; systemctl is-active nodeyard`);
  await host.run(`nodeyard list --leases | grep ${lease}; nodeyard list | grep '${nodes[0].id}.*in-use'`);
  await host.run(`nodeyard release ${lease}`);
  await host.run("systemctl stop nodeyard");

  say("runs launcher and builder on a ZooKeeper, and the builder builds");
  const up =
    "nodeyard --state /run/tree -c /usr/share/doc/nodeyard/examples/fake.yaml up --listen 127.0.0.1:2181";
  await host.run(`systemd-run --quiet --property=Type=notify --property=NotifyAccess=all ${up}`);
  await host.run(`cat >/etc/nodeyard/nodepool.yaml <<'YAML'\n${IMAGES}YAML`);
  await host.run("systemctl start nodeyard-launcher nodeyard-builder");
  await host.run("nodeyard -c /etc/nodeyard/nodepool.yaml image-build tiny --wait");
  await host.run(scriptOf(PAGE, "diskimage-builder"));
  await host.run("nodeyard -c /etc/nodeyard/nodepool.yaml image-build tiny --wait");
  await host.run("systemctl is-active nodeyard-launcher nodeyard-builder");

  say("installs the sliver manager, and systemd learns that it serves");
  // The system lacks what slivers need: none are made.
  await host.run("dpkg --force-depends --install /release/new/nodeyard-sliverd_*.deb; sliverd --version");
  await host.run(`mkdir /etc/nodeyard-sliver
    echo '${JSON.stringify(SLIVERD)}' >/etc/nodeyard-sliver/sliverd.json
    systemctl start nodeyard-sliverd`);
  await host.run("dpkg --purge nodeyard-sliverd; test ! -e /usr/lib/nodeyard-sliverd");

  say("removes and purges");
  await host.run(scriptOf(PAGE, "remove"));
  await host.run("test ! -e /usr/bin/nodeyard; ! systemctl is-active nodeyard-launcher nodeyard-builder");
  await host.run("test -e /etc/nodeyard/nodepool.yaml");
  await host.run(scriptOf(PAGE, "purge"));
  await host.run(
    "test ! -e /etc/nodeyard; test ! -e /var/log/nodeyard; test ! -e /var/lib/nodeyard-builder; test -e /var/lib/nodeyard/tree.sqlite",
  );
}

async function until(look: () => Promise<unknown>): Promise<void> {
  for (let turn = 0; turn < 300 * patience(); turn++) {
    if ((await look().catch(() => undefined)) !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  await look();
}

function expect(value: string, wanted: string): void {
  if (value !== wanted) throw new Error(`${JSON.stringify(value)} is not ${JSON.stringify(wanted)}`);
}

function say(text: string): void {
  console.log(text);
}
