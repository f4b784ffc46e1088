import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Certificates,
  kazoo,
  makeCertificates,
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../../testing/zookeeper/index.ts";
import { type Bench, startBench } from "./bench.ts";

type Target = "ours" | "ZooKeeper";
const TARGETS: readonly Target[] = ["ours", "ZooKeeper"];

/**
 * How Nodepool's own tests use a ZooKeeper: TLS with client certificates, a chroot of its own for each test that one short
 * session makes and another removes, several clients at once in between.
 */
describe.skipIf(requireZooKeeper())("Nodepool's tests' way of working", () => {
  let real: ZooKeeperServer;
  let bench: Bench;
  let folder: string;
  let certificates: Certificates;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-certificates-"));
    certificates = await makeCertificates(folder);
    const pem = (path: string) => readFileSync(path, "utf8");
    const { ca, cert, key } = certificates;
    [real, bench] = await Promise.all([
      startZooKeeper({ tls: true }),
      startBench({ tcp: { tls: { ca: pem(ca), cert: pem(cert), key: pem(key) } } }),
    ]);
  });
  afterAll(async () => {
    await Promise.all([real?.stop(), bench?.close()]);
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(TARGETS)("%s", async (target) => {
    const hosts = target === "ours" ? bench.hosts : `${real.host}:${real.port}`;
    const { ca, cert, key } = target === "ours" ? certificates : real.tls!;
    const out = await kazoo(SCRIPT, [hosts, ca, cert, key]);
    expect(
      out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      Array.from({ length: 5 }, () => [["0000000000", "0000000001", "0000000002"], ["a", "b"], true]),
      [],
      true,
    ]);
    if (target === "ours") expect([...bench.server.cuts]).toEqual([]);
  });

  test.each(TARGETS)("over TLS an event and the reply after it are read at once: %s", async (target) => {
    const hosts = target === "ours" ? bench.hosts : `${real.host}:${real.port}`;
    const { ca, cert, key } = target === "ours" ? certificates : real.tls!;
    const [pings] = JSON.parse(await kazoo(TOGETHER, [hosts, ca, cert, key])) as [number];
    expect(pings).toBe(0);
  });
});

/**
 * A session of 120 s is pinged every 13 s at the soonest. Kazoo waits for its socket, and does not see what OpenSSL has read of a
 * record already: a second frame in that record lies there until something else arrives.
 */
const TOGETHER = `
hosts, ca, cert, key = args
zk = client(hosts, use_ssl=True, ca=ca, certfile=cert, keyfile=key, timeout=120)
zk.ensure_path('/together')
started = time.monotonic()
for _ in range(5):
    seen = threading.Event()
    zk.get('/together', watch=lambda event: seen.set())
    zk.set('/together', b'x' * 100)
    seen.wait(60)
    for read in [zk.get_async('/together') for _ in range(10)]:
        read.get(timeout=60)
say([int((time.monotonic() - started) // 10)])
zk.stop()
`;

const SCRIPT = `
hosts, ca, cert, key = args
def connected(chroot=''):
    return client(hosts + chroot, use_ssl=True, ca=ca, certfile=cert, keyfile=key, timeout=10)
def once(act):
    zk = connected()
    try:
        return act(zk)
    finally:
        zk.stop()
        zk.close()
results = {}
def one(number):
    chroot = '/nodepool_test/%d' % number
    once(lambda zk: zk.ensure_path(chroot))
    clients = [connected(chroot) for _ in range(3)]
    for zk in clients:
        zk.ensure_path('/requests')
        zk.create('/requests/', b'{}', sequence=True, ephemeral=True)
    made = sorted(clients[0].get_children('/requests'))
    lock = clients[0].Lock('/lock', 'a')
    lock.acquire(timeout=60)
    waiting = clients[1].Lock('/lock', 'b')
    taken = threading.Thread(target=lambda: waiting.acquire(timeout=60))
    taken.start()
    while len(lock.contenders()) < 2:
        time.sleep(0.01)
    contenders = lock.contenders()
    # The holder's session ends without a release: the one that waits gets the lock.
    clients[0].stop()
    clients[0].close()
    taken.join()
    results[number] = [made, contenders, waiting.is_acquired]
    for zk in clients[1:]:
        zk.stop()
        zk.close()
    once(lambda zk: zk.delete(chroot, recursive=True))
threads = [threading.Thread(target=one, args=(number,)) for number in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
say([results.get(number) for number in range(5)])
say(once(lambda zk: zk.get_children('/nodepool_test')))
# Sessions of nobody: what the server counts when all have gone is the one that asks.
zk = connected()
while True:
    figures = dict(line.split('\\t', 1) for line in zk.command(b'mntr').splitlines() if '\\t' in line)
    if figures['zk_global_sessions'] == '1':
        break
    time.sleep(0.05)
say(True)
zk.stop()
`;
