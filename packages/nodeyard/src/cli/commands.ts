import type { Command } from "commander";
import type { Session } from "./session.ts";

/** Gives a command its arguments, options and action. */
export type Define = (command: Command, session: Session) => void;

export interface CommandEntry {
  readonly name: string;
  /** Its line in the help of the whole. */
  readonly summary: string;
  /** What it is made of is loaded only where that command runs, or its help is printed. */
  readonly load: () => Promise<Define>;
}

/** All commands, in the order of the help. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "up",
    summary: "run everything in this process on a tree of its own: no ZooKeeper is needed",
    load: async () => (await import("./commands/up.ts")).defineUp,
  },
  {
    name: "launcher",
    summary: "run a launcher on the ZooKeeper of the configuration, beside Zuul and other launchers",
    load: async () => (await import("./commands/launcher.ts")).defineLauncher,
  },
  {
    name: "builder",
    summary: "run a builder: it makes the diskimages of the configuration and uploads them",
    load: async () => (await import("./commands/builder.ts")).defineBuilder,
  },
  {
    name: "request",
    summary: "ask for nodes, all together or not at all; they are yours until the lease is released or ends",
    load: async () => (await import("./commands/request.ts")).defineRequest,
  },
  {
    name: "release",
    summary: "give leases back; their nodes are returned at once",
    load: async () => (await import("./commands/release.ts")).defineRelease,
  },
  {
    name: "retire",
    summary: "have the backing node that a slot is on take no more slots; it goes when its last one does",
    load: async () => (await import("./commands/retire.ts")).defineRetire,
  },
  {
    name: "list",
    summary: "list the nodes, or with --leases who has which",
    load: async () => (await import("./commands/list.ts")).defineList,
  },
  {
    name: "leaks",
    summary: "compare clouds with the records, and show what the launchers' sweeps would do; changes nothing",
    load: async () => (await import("./commands/leaks.ts")).defineLeaks,
  },
  {
    name: "request-list",
    summary: "list the node requests that are not answered yet, of Zuul and of everyone else",
    load: async () => (await import("./commands/request-list.ts")).defineRequestList,
  },
  {
    name: "explain",
    summary:
      "say what a request, lease or node is doing, who could serve a label, or how a diskimage stands; what it waits for and what happens next",
    load: async () => (await import("./commands/explain.ts")).defineExplain,
  },
  {
    name: "info",
    summary: "show what the tree holds of a provider, configured or not",
    load: async () => (await import("./commands/info.ts")).defineInfo,
  },
  {
    name: "hold",
    summary: "keep a node for a person to look at; nobody else gets it",
    load: async () => (await import("./commands/node-state.ts")).defineHold,
  },
  {
    name: "delete",
    summary: "mark a node for deletion; a launcher that serves its provider carries it out",
    load: async () => (await import("./commands/node-state.ts")).defineDelete,
  },
  {
    name: "image-build",
    summary: "ask for a build of a diskimage; a builder carries it out",
    load: async () => (await import("./commands/image-build.ts")).defineImageBuild,
  },
  {
    name: "image-list",
    summary: "list uploads of diskimages to providers",
    load: async () => (await import("./commands/image-lists.ts")).defineImageList,
  },
  {
    name: "dib-image-list",
    summary: "list builds of diskimages",
    load: async () => (await import("./commands/image-lists.ts")).defineDibImageList,
  },
  {
    name: "image-status",
    summary: "list diskimages: which are paused, for which a build is asked, how trials of new builds go",
    load: async () => (await import("./commands/image-lists.ts")).defineImageStatus,
  },
  {
    name: "image-pause",
    summary: "begin no builds of a diskimage; uploads go on",
    load: async () => (await import("./commands/image-changes.ts")).defineImagePause,
  },
  {
    name: "image-unpause",
    summary: "begin builds of a diskimage again",
    load: async () => (await import("./commands/image-changes.ts")).defineImageUnpause,
  },
  {
    name: "dib-image-delete",
    summary: "delete a build with its uploads and files; builders carry it out",
    load: async () => (await import("./commands/image-changes.ts")).defineDibImageDelete,
  },
  {
    name: "image-delete",
    summary: "delete an upload at its provider; builders carry it out",
    load: async () => (await import("./commands/image-changes.ts")).defineImageDelete,
  },
  {
    name: "export-image-data",
    summary: "save the records of builds, uploads and trials; the file is readable by you alone",
    load: async () => (await import("./commands/image-data.ts")).defineExport,
  },
  {
    name: "import-image-data",
    summary: "write saved records of builds, uploads and trials back; stop all builders and launchers first",
    load: async () => (await import("./commands/image-data.ts")).defineImport,
  },
  {
    name: "alien-image-list",
    summary: "list images in clouds that carry a tag of ours and have no record; changes nothing",
    load: async () => (await import("./commands/alien-images.ts")).defineAlienImages,
  },
  {
    name: "erase",
    summary:
      "remove what the tree holds of a provider, uploads and nodes; deletes nothing in its cloud, and cannot be undone",
    load: async () => (await import("./commands/erase.ts")).defineErase,
  },
  {
    name: "config-validate",
    summary: "check the configuration; exit code 1 when it is wrong (nodeyard -c FILE config-validate)",
    load: async () => (await import("./commands/config-validate.ts")).defineConfigValidate,
  },
  {
    name: "sliverd",
    summary: "run a sliver manager, make machines sliver hosts, keep the keys that they believe",
    load: async () => (await import("./commands/sliverd.ts")).defineSliverd,
  },
];
