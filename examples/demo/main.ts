import { mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { GRACE_MS, openState, startUp, type Up, untilStopped } from "@nodeyard/process";
import { hexId, messageOf } from "@nodeyard/runtime";
import { createLog } from "@nodeyard/telemetry";
import { type Machine, systemMachine } from "@nodeyard/telemetry/machine";
import { parseDemoArguments } from "./arguments.ts";
import { Commands, type Granted } from "./commands.ts";
import { writeConfiguration } from "./configuration.ts";
import { greet, howToLogIn, type RealNodes, startRealNodes } from "./nodes.ts";
import { untilReturned } from "./returned.ts";

/**
 * `npm start`: Nodeyard on a tree of its own with fake nodes and real ones: slivers of this machine if it can make them (not with
 * --no-slivers), else static hosts that are SSH servers on loopback. Requests nodes, uses one, and stays up; with --once returns them and
 * ends.
 */
const asked = parseDemoArguments(process.argv.slice(2));
const say = (text: string) => void process.stdout.write(text);
const complain = (text: string) => void process.stderr.write(`nodeyard: ${text}\n`);
// A closed pipe or terminal is no error: the nodes are still returned.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
if ("help" in asked) {
  say(asked.help);
  process.exit(0);
}
if ("wrong" in asked) {
  complain(asked.wrong);
  process.exit(2);
}
const { once, wantsSlivers } = asked;
const machine = systemMachine();
// Relative, because the path of the socket in it must be short.
const stateFolder = once ? mkdtempSync(join(tmpdir(), "nodeyard-demo-")) : ".nodeyard";
const logFile = join(stateFolder, "nodeyard.log");
const wish = { stateFolder, machine, wantsSlivers, say };
let tree: Awaited<ReturnType<typeof openState>> | undefined;
let real: RealNodes | undefined;
let up: Up | undefined;

process.exitCode = await demo().catch((error) => {
  complain(`the demo failed: ${messageOf(error)}${once || tree === undefined ? "" : ` (log: ${logFile})`}`);
  return 1;
});
await end();

async function demo(): Promise<number> {
  // First of all: what another demo that runs here has started and written must stay as it is.
  tree = await openState(stateFolder, machine);
  real = await startRealNodes(wish);
  const { hosts, slivers, authorizedKey, label } = real;
  const config = join(stateFolder, "nodepool.yaml");
  const isWritten = writeConfiguration(config, {
    hosts,
    slivers,
    authorizedKey,
    user: machine.user,
    cloudFile: resolve(stateFolder, "fake-cloud.journal"),
  });
  const log = createLog({ levels: {}, format: "text", to: { descriptor: openSync(logFile, "a", 0o600) } });
  // Nobody knows the token: what needs no login is for the owner of the socket, whatever code on the nodes reaches (rule 11).
  const page = { tcp: { host: "127.0.0.1", port: 0 }, token: hexId(machine.random) };
  const front = { configured: "never", socket: true, ...(once ? {} : page) } as const;
  up = await startUp({ stateFolder, files: { path: config }, front, tree }, machine, log);
  say(`Nodeyard is up on ${stateFolder}: an embedded tree, the launcher, ${config}\n`);

  const commands = new Commands(machine, stateFolder, say);
  await commands.releaseAll();
  const granted: Granted[] = [];
  let login = "";
  const tour = async () => {
    granted.push(await commands.request(["fake-small", "fake-large"]));
    if (label !== undefined) {
      const owned = await commands.request([label]);
      granted.push(owned);
      await greet(owned, real!, wish);
      login = howToLogIn(owned, real!, stateFolder);
    }
    await commands.show("list");
  };
  if (isWritten) await tour();
  else {
    say(`${config} was edited, and is used as it is; to have the demo's own again, remove it\n`);
    // It may have other labels by now.
    await tour().catch((error) => say(`the tour ends here: ${messageOf(error)}\n`));
  }
  if (!once) {
    await commands.show("dashboard");
    return stay(machine, login);
  }

  await commands.releaseAll();
  const ids = granted.flatMap(({ nodes }) => nodes.map(({ id }) => id));
  await untilReturned(stateFolder, machine, ids);
  say(`all ${ids.length} nodes are returned\n`);
  return 0;

  async function stay(of: Machine, howTo: string): Promise<number> {
    const { failed } = up!;
    let isLost = false;
    void failed.then(({ message }) => {
      isLost = true;
      complain(`${message} (log: ${logFile})`);
    });
    const stopped = untilStopped(of, log, async () => ({
      failed,
      async close(graceMs) {
        if (!isLost) {
          say("\nreturning the nodes and stopping\n");
          await commands.releaseAll().catch(() => {});
        }
        await up?.close(graceMs);
        up = undefined;
      },
    }));
    // Signals are heard by now: who reads this may send one at once.
    say(whatNext(howTo));
    return stopped;
  }
}

function whatNext(login: string): string {
  const nodeyard = `npx nodeyard --state ${stateFolder}`;
  return `
Nodeyard stays up until Ctrl-C. In another terminal, in this folder:

  ${nodeyard} list                           nodes
  ${nodeyard} list --leases                  who has them
  ${nodeyard} request fake-small:3 --wait    more nodes, which are fake: nobody answers at their addresses;
                                             return them with "release LEASE"
  ${nodeyard} explain ID                     why a request, lease or node waits, and what happened
  ${nodeyard} hold NODE                      keep a node to examine it
  ${nodeyard} dashboard                      another link to the page: each logs one browser in, once
  curl --unix-socket ${stateFolder}/http.sock http://nodeyard/metrics
                                             metrics; also /node-list, /request-list, /ready ...
${login}
Configuration: ${stateFolder}/nodepool.yaml (edit it: changes are taken up within a second, and the next start keeps them)
Log: ${stateFolder}/nodeyard.log
`;
}

async function end(): Promise<void> {
  await up?.close(GRACE_MS).catch(() => {});
  await tree?.close().catch(() => {});
  await real?.stop().catch((error) => {
    complain(messageOf(error));
    process.exitCode = 1;
  });
  if (once) rmSync(stateFolder, { recursive: true, force: true });
}
