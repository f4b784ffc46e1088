import { type CloudPart, type Evidence, type FoundPart, imageTagOf, tagOf } from "@nodeyard/driver";
import type { AzureAccount } from "./account.ts";
import { type AzureResource, keyOf } from "./resources.ts";

/** Name of the machine in an id. */
const MACHINE = /\/virtualmachines\/([^/]+)$/i;

/**
 * What stands beside machines. The request that makes a machine also tags its interface and addresses. Azure makes its disk without tags, so
 * `evidence` says whose it is. What is in use has no tag here: it goes with what uses it.
 */
export function besideMachines(
  account: AzureAccount,
  evidence: Evidence,
): Readonly<Record<string, CloudPart>> {
  const remove = (id: string, signal: AbortSignal) => account.delete(id, signal);
  const kind = (type: string, part: (one: AzureResource) => Omit<FoundPart, "id">): CloudPart => ({
    list: async (signal) =>
      (await account.list<AzureResource>(account.path(type), signal)).map((one) => ({
        id: keyOf(one.id),
        ...part(one),
      })),
    delete: remove,
  });
  const machineIn = (id: string | undefined) => MACHINE.exec(keyOf(id))?.[1];
  return {
    nic: kind("networkInterfaces", ({ tags = {}, properties: { virtualMachine } }) => ({
      on: [machineIn(virtualMachine?.id)],
      tag: virtualMachine === undefined ? tagOf(tags) : null,
    })),
    pip: kind("publicIPAddresses", ({ tags = {}, properties: { ipConfiguration } }) => ({
      on: [keyOf(ipConfiguration?.id).replace(/\/ipconfigurations\/.*/, "")],
      tag: ipConfiguration === undefined ? tagOf(tags) : null,
    })),
    disk: {
      ...kind("disks", ({ id, tags = {}, managedBy, properties: { diskState = "" } }) => ({
        on: [machineIn(managedBy)],
        tag:
          managedBy || /Attached|Reserved/.test(diskState)
            ? null
            : (tagOf(tags) ?? evidence.tagOf("disk", keyOf(id))),
        imageTag: imageTagOf(tags) ?? undefined,
      })),
      delete: (id, signal) => removeDisk(account, id, signal),
    },
    image: {
      list: async (signal) =>
        (await account.list<AzureResource>(account.path("images"), signal)).map(({ name, tags = {} }) => ({
          ...{ id: name, imageTag: imageTagOf(tags) },
        })),
      delete: (name, signal) => remove(account.path("images", name), signal),
    },
  };
}

/** A disk that may be written to is closed first: Azure does not delete it before. */
export async function removeDisk(account: AzureAccount, path: string, signal: AbortSignal): Promise<void> {
  const disk = await account.get<AzureResource>(path, signal);
  if (disk === undefined) return;
  if (/^Active/.test(disk.properties.diskState ?? ""))
    await account.whole("POST", `${path}/endGetAccess`, {}, signal);
  await account.delete(path, signal);
}
