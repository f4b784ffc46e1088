import { chmod, chown, mkdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { MachineError } from "../../../errors.ts";
import { deviceNumber } from "../../edge/device-number.ts";
import { run } from "../../edge/run.ts";
import type { DeviceNode } from "../lxc-config.ts";
import type { Names } from "../names.ts";

/**
 * Nodes for devices of a sliver, in a folder of its own: the machine's belong to ids that the sliver does not have, so that its root could not
 * open them, and their modes are the machine's. Throws MachineError for one that is not there.
 */
export async function makeNodes(
  folder: string,
  devices: readonly string[],
  { uid }: Names,
  signal: AbortSignal,
): Promise<readonly DeviceNode[]> {
  await rm(folder, { recursive: true, force: true });
  if (devices.length === 0) return [];
  await mkdir(folder);
  await chmod(folder, 0o711);
  const nodes: DeviceNode[] = [];
  for (const path of devices.flatMap((one) => one.split(" "))) {
    const info = await stat(path).catch((cause) => {
      const remedy = "connect it, or take it out of machine.devices in sliverd.json";
      throw new MachineError(`the device ${path} is not there: ${remedy}`, { cause });
    });
    const kind = info.isCharacterDevice() ? "c" : info.isBlockDevice() ? "b" : undefined;
    if (kind === undefined) throw new MachineError(`${path} of machine.devices in sliverd.json is no device`);
    const [major, minor] = deviceNumber(info.rdev);
    const from = join(folder, String(nodes.length));
    await run(["mknod", "-m", "660", from, kind, String(major), String(minor)], { signal });
    await chown(from, uid, uid);
    nodes.push({ from, to: path.slice(1), number: `${kind} ${major}:${minor}` });
  }
  return nodes;
}
