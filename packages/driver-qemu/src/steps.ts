import {
  type CreateOrder,
  DriverError,
  type Machine,
  type Step,
  type StepContext,
  type Tag,
} from "@nodeyard/driver";
import { Boot } from "./edge/boot.ts";
import type { HostFolder } from "./edge/host-folder.ts";
import { needOf } from "./machine/amounts.ts";
import { nodeName } from "./names.ts";
import type { Parts } from "./parts.ts";

const STEP_MS = 60_000;
/** The first machine of an image waits until it is copied. */
const IMAGE_MS = 30 * 60_000;

/** From nothing, or from whatever an earlier call left. */
export async function* createSteps(
  parts: Parts,
  order: CreateOrder,
  { signal, externalId }: StepContext,
): AsyncGenerator<Step, Machine, void> {
  const { host, config } = parts;
  const name = nodeName(order.tag);
  const boot = new Boot(parts, order, name);
  const saved = externalId === name ? {} : { save: { externalId: name } };
  yield { step: "folder", deadlineMs: STEP_MS, ...saved };
  await host.claim(name, { hostname: order.hostname, resources: needOf(order.label) });

  if ((await host.nodes.running(name)) === undefined) {
    yield { step: "image", deadlineMs: IMAGE_MS };
    const image = await boot.images(signal);

    yield { step: "disk", deadlineMs: STEP_MS };
    await boot.disk(image, signal);

    const probed = yield* accelerate(parts, order, boot, signal);
    if (!probed.runs) {
      yield { step: "start", deadlineMs: STEP_MS };
      await boot.disk(image, signal);
      await boot.start(probed.accelerator, signal);
    }
  }
  const running = await host.nodes.running(name);
  if (running === undefined)
    throw new DriverError("transient", `${config.name}: the machine of ${order.hostname} ended at once`);
  return describe(parts, order, name, running.port);
}

/** From whatever is left. The tag says all: an id from an older version, or of another node, is not even looked at. */
export async function* removeSteps(
  host: HostFolder,
  tag: Tag,
  { signal }: StepContext,
): AsyncGenerator<Step, void, void> {
  const name = nodeName(tag);
  yield { step: "stop", deadlineMs: STEP_MS };
  await host.stop(name, signal);

  yield { step: "discard", deadlineMs: STEP_MS };
  await host.nodes.discard(name);
}

/** Under `auto` the first machine of an image is its probe: when it answers under KVM, it runs already. */
async function* accelerate(
  { host, config, context }: Parts,
  order: CreateOrder,
  boot: Boot,
  signal: AbortSignal,
): AsyncGenerator<Step, { readonly accelerator: "kvm" | "tcg"; readonly runs: boolean }, void> {
  const { accelerator, probeTimeoutMs } = config.own;
  if (accelerator !== "auto") return { accelerator, runs: false };
  // Only a host key proves that a guest runs: user-mode networking takes a connection for any port that it forwards.
  const shown = ["ssh", "network_cli"].includes(order.label.connection.type);
  if (!shown || !(await host.kvm())) return { accelerator: "tcg", runs: false };
  const key = await host.verdicts.key(boot.files());
  const known = await host.verdicts.get(key);
  if (known !== undefined) return { accelerator: known, runs: false };

  yield { step: "kvm-probe", deadlineMs: probeTimeoutMs + 2 * STEP_MS };
  const awaited = host.verdicts.awaited(key, signal);
  if (awaited !== undefined) return { accelerator: await awaited, runs: false };
  const found = await host.verdicts.probe(key, () => boot.probe(signal));
  context.log.info(
    { provider: config.name, image: order.label.image?.name, accelerator: found },
    "probe boot",
  );
  return { accelerator: found, runs: found === "kvm" };
}

function describe({ host, config }: Parts, order: CreateOrder, name: string, port: number): Machine {
  const { address } = config.own;
  const ipv6 = address.includes(":");
  return {
    externalId: name,
    interfaceIp: address,
    publicIpv4: ipv6 ? null : address,
    publicIpv6: ipv6 ? address : null,
    hostname: order.hostname,
    hostId: host.host.name,
    resources: needOf(order.label),
    // The guest's own port is behind one of this host.
    connection: { port },
  };
}
