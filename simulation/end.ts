import type { FakeCloud } from "@nodeyard/driver-fake";
import { paths } from "@nodeyard/model";
import { Broken, takenOf } from "./checks/index.ts";
import { contenders, lacking } from "./quiet.ts";
import type { Scene } from "./scene.ts";
import { BOARDS, LIMITS, TENANT_LIMITS } from "./setting.ts";
import { sightingOfVerdict } from "./sightings.ts";

/** Log lines of one launcher in 200 quiet seconds, at most: no line may repeat without end. */
const QUIET_LINES = 30;

/** Nothing waits silently: with the whole tree in view, each launcher can say what each open request waits for. */
export function checkVerdicts({ processes, see }: Scene): void {
  for (const { name, dead, closing, life, launcher } of processes) {
    if (dead || closing || life.frozen || launcher === undefined || !launcher.view.complete) continue;
    for (const [id, { record }] of launcher.view.requests.byId) {
      if (record.state !== "requested" && record.state !== "pending") continue;
      const verdict = launcher.verdict(id);
      const sighting = verdict && sightingOfVerdict(verdict.code);
      if (sighting !== undefined) see(sighting);
      if (verdict === undefined)
        throw new Broken(
          "nothing waits silently",
          undefined,
          `${name} cannot say why ${id} (${record.state}) waits`,
        );
    }
  }
}

/** What must be true at the end: machines, records, locks, ledgers and leases agree, and launchers log little. */
export function checkEnd(scene: Scene, linesBefore: readonly number[]): void {
  const { clouds, check, cluster, processes } = scene;
  for (const [provider, cloud] of clouds) checkMachines(scene, provider, cloud);
  for (const { node, names } of contenders(scene))
    throw new Broken("a free node is not locked", undefined, `${node}: ${names}`);
  checkRegistry(scene);
  const boards = [...check.nodes.values()].filter(({ data }) => data.provider === "lab").length;
  if (boards !== BOARDS)
    throw new Broken("every slot is registered once", undefined, `${boards} of ${BOARDS}`);
  checkMinReady(scene);
  checkLedgers(scene);
  const letters = [...(cluster.znodes.children("/nodeyard/dead-letters") ?? [])];
  if (letters.length > 0) throw new Broken("no dead letter outlives its node", undefined, `${letters}`);
  checkChatter(processes, linesBefore);
}

/** Each live launcher has one component and one per pool; no other component of ours exists. */
function checkRegistry({ cluster, processes, config }: Scene): void {
  const alive = processes.filter((each) => !each.dead);
  const pools = config.providers.reduce((sum, provider) => sum + provider.pools.length, 0);
  for (const [kind, each] of [
    ["launcher", 1],
    ["pool", pools],
  ] as const) {
    const names = (cluster.znodes.children(`/nodepool/components/${kind}`) ?? []).filter((name) =>
      name.startsWith("launcher-"),
    );
    for (const { name } of alive) {
      const own = names.filter(
        (component) => component.startsWith(name) && component.length === name.length + 10,
      );
      if (own.length !== each)
        throw new Broken(
          "each component is registered once",
          undefined,
          `${name}: ${own.length} of ${each} (${kind})`,
        );
    }
    if (names.length !== alive.length * each)
      throw new Broken("a dead process has no component", undefined, `${kind}: ${names}`);
  }
}

function checkMachines(scene: Scene, provider: string, cloud: FakeCloud): void {
  const { nodes } = scene.check;
  const foreign = scene.foreign.get(provider) ?? [];
  const machines = cloud.inspect();
  for (const id of foreign)
    if (!machines.some((machine) => machine.id === id))
      throw new Broken("nothing without our id is deleted", undefined, `${provider}: machine ${id}`);
  const tags = machines
    .filter(({ id }) => !foreign.includes(id))
    .map((machine) => machine.tag?.nodeId ?? "none");
  for (const tag of tags)
    if (nodes.get(tag)?.data.provider !== provider)
      throw new Broken("nothing outlives its record", undefined, `${provider}: machine of node ${tag}`);
  if (new Set(tags).size !== tags.length)
    throw new Broken("one tag has one machine", undefined, `${provider}: ${tags.join(", ")}`);
  for (const [id, { data }] of nodes)
    if (data.provider === provider && !tags.includes(id))
      throw new Broken("a ready node has a machine", undefined, `${provider}: ${id}`);
}

function checkChatter(processes: Scene["processes"], linesBefore: readonly number[]): void {
  for (const [index, { name, dead, log, counters }] of processes.entries()) {
    if (dead) continue;
    // A step of a life is reported once: nodes that reach their maximum age are replaced while all is quiet.
    const since = log.lines
      .slice(linesBefore[index] ?? 0)
      .filter(({ level, facts }) => level !== "debug" && !(level === "info" && "event" in facts));
    if (since.length > QUIET_LINES)
      throw new Broken(
        "no log line repeats without end",
        undefined,
        `${name}: ${JSON.stringify(since.slice(-5))}`,
      );
    const unexpected = counters.list().filter((counter) => counter.name === "launcher.unexpected");
    if (unexpected.length > 0)
      throw new Broken(
        "no error comes unexpected",
        undefined,
        `${name}: ${JSON.stringify([unexpected, log.lines.filter(({ facts }) => JSON.stringify(facts).includes("unexpected"))])}`,
      );
  }
}

/** At least as many nodes are idle as `min-ready` says. */
function checkMinReady(scene: Scene): void {
  for (const { label, nodes, minReady } of lacking(scene))
    throw new Broken(
      "min-ready is reached when all is quiet",
      undefined,
      `${label}: ${nodes} of ${minReady}`,
    );
}

/** A ledger that no limit needs does not exist. */
function checkLedgers({ cluster, check }: Scene): void {
  const taken = takenOf(check.nodes);
  const kinds = [
    { limits: LIMITS, sums: taken.pools, folder: "/nodeyard/limits" },
    { limits: TENANT_LIMITS, sums: taken.tenants, folder: "/nodeyard/limits/@tenant" },
  ];
  for (const { limits, sums, folder } of kinds)
    for (const [name, { cores: limited }] of limits) {
      const data = cluster.znodes.data(`${folder}/${name}`);
      if (data === undefined) continue;
      const says = JSON.parse(Buffer.from(data).toString()) as { instances?: number; cores?: number };
      const { instances = 0, cores = 0 } = sums.get(name) ?? {};
      if (says.instances !== instances || (limited !== undefined && (says.cores ?? 0) !== cores)) {
        const what = `${name}: ${JSON.stringify(says)}, not ${instances} of ${cores} cores`;
        throw new Broken("a ledger says what exists", undefined, what);
      }
    }
}

export function describe({ cluster, zuul, cli, check, processes, builders, images }: Scene): string {
  const all = new Set([...zuul.open, ...check.requests.keys()]);
  const open = [...all].map((id) => `${id} ${JSON.stringify(check.requests.get(id)?.data)}`);
  const nodes = [...check.nodes].map(
    ([id, { data }]) => `${id} ${data.provider}/${data.pool} ${data.state} ${data.allocated_to}`,
  );
  const alive = processes.filter((each) => !each.dead);
  const verdicts = alive.map(
    (each) => `${each.name}: ${[...all].map((id) => JSON.stringify(each.launcher?.verdict(id)))}`,
  );
  const logs = alive.flatMap((each) =>
    each.log.lines
      .slice(-8)
      .map((line) => `${each.name} ${line.level} ${line.text} ${JSON.stringify(line.facts)}`),
  );
  const locks = [...all].map(
    (id) => `lock ${id}: ${[...(cluster.znodes.children(paths.requestLock(id)) ?? [])]}`,
  );
  const pools = [...(cluster.znodes.children("/nodepool/components/pool") ?? [])];
  const leases = [...(cluster.znodes.children("/nodeyard/leases") ?? [])];
  const work = alive.map(
    (each) => `${each.name} ${JSON.stringify(each.launcher?.inspect())} ${each.tree.session().state}`,
  );
  const imageWork = [...images.builds, ...images.uploads].map(([path, { state }]) => `${path} ${state}`);
  const builds = builders.alive.flatMap(({ name, awake, builder, log }) => [
    `${name} ${awake ? "awake" : "not awake"} ${JSON.stringify(builder?.progress())}`,
    ...log.lines.slice(-8).map((line) => `${name} ${line.level} ${line.text} ${JSON.stringify(line.facts)}`),
  ]);
  const rest = [`pools ${pools}`, `leases ${leases}, clients ${cli.open}`];
  return [
    "",
    ...rest,
    ...work,
    ...locks,
    ...open,
    ...nodes,
    ...verdicts,
    ...logs,
    ...imageWork,
    ...builds,
  ].join("\n  ");
}
