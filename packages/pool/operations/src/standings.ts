import {
  decodeComponent,
  decodeNode,
  decodeStandings,
  paths,
  STANDINGS,
  type Standing,
  standingsOf,
} from "@nodeyard/model";
import { orUndefined } from "@nodeyard/tree";
import { readEach } from "./explain/tree-facts.ts";
import type { OperationHandles } from "./handles.ts";

/** What each code says: what it means, what happens next by itself, and what a person can do; `NAME` stands for the thing's name. */
export const standingTexts = {
  "provider.served": ["Its nodes are launched as it is configured"],
  "provider.opening": ["It is being opened for the first time", "It serves as soon as it is open."],
  "provider.failing": [
    "Its API or the way to it fails",
    "It is tried again with growing pauses, a minute at most.",
    "Correct what the cause names: address, credentials, certificate or network.",
  ],
  "provider.configuration": [
    "It cannot be opened as it is configured",
    "It is tried again with growing pauses, and at once when its configuration has changed.",
    "Correct what the cause names, in nodepool.yaml or in the file with the credentials.",
  ],
  "provider.foreign": [
    "A launcher that is not Nodeyard's serves it, too, so this one does not",
    "It is served when the other launcher is gone.",
    "Stop the other launcher, or remove the provider from one of the two configurations.",
  ],
  "provider.not-in-force": [
    "Its new configuration cannot be opened; it is served by the former one",
    "The new one is tried again with growing pauses, a minute at most.",
    "Correct what the cause names.",
  ],
  "provider.elsewhere": [
    "It works in another place than before, and nodes of it are where it does not look",
    "Nobody is given these nodes. They are deleted as long as the launcher that had the former settings runs.",
    "Put the former settings back until they are gone: nodeyard leaks --provider NAME",
  ],
  "provider.braked": [
    "A sweep would delete so much at once that it deletes nothing: the tree may not be the one of this cloud, or the cloud's list not complete",
    "It sweeps again each minute, and goes on when fewer differ.",
    "Compare them: nodeyard leaks --provider NAME. Delete what is really to go: nodeyard delete NODE, or the machine in its cloud.",
  ],
  "provider.impaired": [
    "It serves, and a part of it does not work",
    "What the cause names is tried again with growing pauses, a minute at most.",
    "Correct what the cause names.",
  ],
  "provider.leaving": [
    "It left the configuration with nodes, which this launcher still deletes",
    "Free nodes are deleted now, others when they are returned.",
    "Before that do not revoke its credentials, and do not stop this launcher, which alone has its settings. After a restart: put them back.",
  ],
  "provider.left": [
    "Nodes of it are left, and no launcher has it in its configuration",
    "Nobody is given these nodes, and nobody deletes them.",
    "Put it back into a configuration, or delete the machines by hand and give up the records: nodeyard delete NODE --forget, or all: nodeyard erase NAME",
  ],
  "provider.no-hosts": [
    "None of its hosts can be used",
    "Each host is tried again, at least every minute.",
    "Look at its hosts: nodeyard list --hosts --provider NAME",
  ],
  "host.registered": ["It answers, and is registered"],
  "host.waiting": ["It has not been tried yet", "It is tried next."],
  "host.silent": [
    "It does not answer as it is configured, so it is not offered",
    "It is tried again with growing pauses, a minute at most.",
    "Repair the host or its network, or correct its name, port or host-key in nodepool.yaml.",
  ],
  "host.claimed": [
    "It answers, and nodes of another provider have it",
    "It is registered when these nodes are gone.",
    "Remove it from one of the two providers.",
  ],
  "label.offered": ["It can be served"],
  "label.opening": ["What serves it is being opened", "It is offered as soon as that is open."],
  "label.unserved": [
    "Nothing that offers it can serve it",
    "Requests for it wait, or fail if no launcher expects that to change.",
    "Look at the cause; explain says more: nodeyard explain label NAME",
  ],
  "label.partly": [
    "A part of what offers it cannot serve it",
    "Requests for it are served by the rest.",
    "Look at the cause; explain says more: nodeyard explain label NAME",
  ],
  "label.no-pool": [
    "It is configured, and no pool offers it",
    "Requests for it fail.",
    "Name it in the labels of a pool, or remove it.",
  ],
  "label.unavailable": [
    "It can never be served as it is configured",
    "Requests for it are declined there.",
    "Correct what the cause names.",
  ],
  "label.no-image": [
    "Its diskimage is not uploaded there",
    "It is offered as soon as an upload is ready.",
    "See what the image waits for: nodeyard explain image IMAGE",
  ],
  "label.launches-fail": [
    "Its launches fail, so it is not launched for a while",
    "One request tests it again at the next try.",
    "Correct what the cause names: image, flavor, network or capacity.",
  ],
  "image.ready": ["It is built and uploaded"],
  "image.unbuilt": ["It has not been built yet", "It is built as soon as a build worker is free."],
  "image.build-failed": [
    "Its last build failed",
    "It is built again with growing pauses.",
    "Correct what the end of its log says: nodeyard explain image NAME. Then: nodeyard image-build NAME",
  ],
  "image.put-off": [
    "It is due, and cannot be built",
    "It is tried again each minute.",
    "Correct what the cause names; of a full disk: free space in images-dir.",
  ],
  "image.upload-failed": [
    "An upload of it failed",
    "It is uploaded again with growing pauses.",
    "Correct what the cause names.",
  ],
  "image.paused": ["Its builds are paused", "Nothing is built until then.", "nodeyard image-unpause NAME"],
  "image.no-builder": [
    "No builder is registered",
    "Nothing is built until then.",
    "Start one: nodeyard builder, or nodeyard up.",
  ],
  "image.unreported": [
    "No builder has it in its configuration, or says so",
    "Builders delete the builds of images that none of them has.",
    "Add it to the diskimages of a builder's configuration, or delete it: nodeyard dib-image-delete",
  ],
  "builder.provider-closed": [
    "It cannot open a provider, so it uploads nothing there",
    "It is tried again with growing pauses, a minute at most.",
    "Correct what the cause names, on this builder's machine.",
  ],
  "member.runs": ["It runs"],
  "member.stopped": ["It has announced that it stops"],
  "member.not-ready": [
    "It runs, and does no work now",
    "It goes on by itself as soon as what is missing is there.",
    "Look at the cause, then at its log.",
  ],
  "sliver-machine.answers": ["It answers"],
  "sliver-machine.silent": [
    "It does not answer",
    "It is asked again every minute; its slivers run on.",
    "Look at sliverd on that machine: systemctl status nodeyard-sliverd",
  ],
  "sliver-machine.unchanged": [
    "It answers, and its slivers cannot be changed",
    "It is asked again every minute; its slivers run on.",
    "Correct what the cause names.",
  ],
  "sliver-machine.counting": [
    "Disk limits of its slivers do not hold until its file system has counted again",
    "It counts by itself, and makes no sliver meanwhile.",
    "If it lasts, see the log of sliverd on that machine: journalctl -u nodeyard-sliverd",
  ],
  "sliver-machine.waits": [
    "Operations on its files wait",
    "Its slivers run on; changes of them are late.",
    "Look at its disks: dmesg, and the log of sliverd on that machine.",
  ],
} as const satisfies Readonly<Record<string, readonly [meaning: string, next?: string, remedy?: string]>>;

/** Codes of standings, for those who report them. */
export type StandingCode = keyof typeof standingTexts;

/** The texts of a standing; empty for a code of a later release. */
export function textsOf({ code, name }: Pick<Standing, "code" | "name">) {
  const known: readonly string[] = Object.hasOwn(standingTexts, code)
    ? standingTexts[code as StandingCode]
    : [];
  const [meaning = "a reason that this release does not know", next = "", remedy = ""] = known;
  return { meaning, next, remedy: remedy.replaceAll("NAME", name) };
}

/** How everything stands, read from the tree itself, for commands; processes with a view have it there. */
export async function readStandings(handles: OperationHandles): Promise<readonly Standing[]> {
  const { tree } = handles;
  const kinds = ["pool", "launcher", "builder"] as const;
  const [reports, components, records, images] = await Promise.all([
    readEach(tree, STANDINGS, (_, data) => decodeStandings(data)),
    Promise.all(
      kinds.map((kind) => readEach(tree, paths.component(kind), (_, data) => decodeComponent(data))),
    ),
    readEach(tree, paths.nodes, decodeNode),
    orUndefined(tree.children(paths.images)),
  ]);
  const nodes = new Map<string, number>();
  for (const { provider } of records)
    if (provider !== null) nodes.set(provider, (nodes.get(provider) ?? 0) + 1);
  return standingsOf({ reports, components: components.flat(), nodes, images: images ?? [] });
}
