import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  kazoo,
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import { type Bench, startBench } from "./bench.ts";

type Target = "ours" | "ZooKeeper";
const TARGETS: readonly Target[] = ["ours", "ZooKeeper"];

/** The same kazoo scripts on our server and on a real ZooKeeper: one expectation, which both must meet. */
describe.skipIf(requireZooKeeper())("kazoo on either server", () => {
  let real: ZooKeeperServer;
  let bench: Bench;

  beforeAll(async () => {
    [real, bench] = await Promise.all([startZooKeeper(), startBench()]);
  });
  afterAll(async () => {
    await Promise.all([real?.stop(), bench?.close()]);
  });

  const hostsOf = (target: Target) => (target === "ours" ? bench.hosts : `${real.host}:${real.port}`);

  async function run(target: Target, script: string): Promise<unknown[]> {
    const out = await kazoo(PRELUDE + script, [hostsOf(target)]);
    return out
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  }

  describe.each(TARGETS)("%s", (target) => {
    test("tells its version, its state and its clients", async () => {
      const said = await run(
        target,
        `
zk = client(hosts)
say(len(zk.server_version()) >= 2)
zk.exists('/watched', watch=print)
words = {word: zk.command(word.encode()) for word in ('isro', 'envi', 'stat', 'srvr', 'conf', 'cons', 'wchs')}
say(words['isro'])
say(words['envi'].splitlines()[0])
say(words['stat'].splitlines()[0].split(': ')[0] == 'Zookeeper version')
say(sorted(set(re.findall(r'^ /127.0.0.1:[0-9]+\\[([01])\\]\\(queued=0,recved=', words['stat'], re.M))))
say(sorted(re.findall(r'^(Mode|Outstanding): (.*)$', words['stat'], re.M)))
say(int(re.search(r'^Connections: (.*)$', words['stat'], re.M).group(1)) >= 2)
say('Clients' in words['srvr'])
pairs = dict(line.split('=') for line in words['conf'].splitlines())
say([pairs['clientPort'] == hosts.split(':')[1], int(pairs['minSessionTimeout']) < int(pairs['maxSessionTimeout'])])
say(re.findall(r'sid=(0x[0-9a-f]+),', words['cons']) == [hex(zk.client_id[0])])
say(words['wchs'])
zk.stop()
`,
      );
      expect(said).toEqual([
        true,
        "rw",
        "Environment:",
        true,
        ["0", "1"],
        [
          ["Mode", "standalone"],
          ["Outstanding", "0"],
        ],
        true,
        false,
        [true, true],
        true,
        "1 connections watching 1 paths\nTotal watches:1\n",
      ]);
    });
  });
});

/** What the scripts share. */
const PRELUDE = `
import re
hosts = args[0]
`;
