import type { Command } from "commander";
import type { Session } from "./session.ts";

/**
 * Gives a command its arguments, options and action. Called once per process, before the command line is parsed. Actions throw;
 * `main` turns what they throw into a line on stderr and an exit code.
 */
export type Define = (command: Command, session: Session) => void;

/** A command before it is loaded. A quick start knows only these entries: `nodeyard list` must not load what a launcher needs. */
export interface CommandEntry {
  /** Names of Nodepool's commands are kept where there is one, so that scripts and habits work on. */
  readonly name: string;
  /** Its line in the help of the whole. */
  readonly summary: string;
  /** Loads the command; called only when it runs or its help is printed. */
  readonly load: () => Promise<Define>;
  /** Whether it has to see all other commands. Then all are loaded, which is slow. */
  readonly whole?: true;
}

/** All commands, in the order of the help. Only `load` costs time; a quick start calls it for one command, help and completion for all. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "up",
    summary: "run everything in this process on an embedded tree: no ZooKeeper is needed",
    load: async () => (await import("./commands/daemons.ts")).defineUp,
  },
  {
    name: "launcher",
    summary: "run a launcher on the ZooKeeper of the configuration, beside Zuul and other launchers",
    load: async () => (await import("./commands/daemons.ts")).defineLauncher,
  },
  {
    name: "builder",
    summary: "run a builder, which builds and uploads the diskimages of the configuration",
    load: async () => (await import("./commands/daemons.ts")).defineBuilder,
  },
  {
    name: "connect",
    summary: "run the connectors of a file, which lease nodes for jobs of other systems (-c connect.yaml)",
    load: async () => (await import("./commands/daemons.ts")).defineConnect,
  },
  {
    name: "garm",
    summary: "make and return machines for GARM, which calls this as its external provider",
    load: async () => (await import("./commands/garm.ts")).defineGarm,
  },
  {
    name: "request",
    summary:
      "request nodes, all together or not at all; you keep them until the lease is released or expires",
    load: async () => (await import("./commands/request.ts")).defineRequest,
  },
  {
    name: "run",
    summary:
      "lease a node, run a command on it by ssh, and release it whatever happens (run LABEL -- COMMAND)",
    load: async () => (await import("./commands/run.ts")).defineRun,
  },
  {
    name: "shell",
    summary: "lease a node, log in to it by ssh, and release it afterwards",
    load: async () => (await import("./commands/run.ts")).defineShell,
  },
  {
    name: "gitlab",
    summary: "be the custom executor of a GitLab runner: config, prepare, run and cleanup of its jobs",
    load: async () => (await import("./commands/gitlab.ts")).defineGitlab,
  },
  {
    name: "release",
    summary: "release leases; their nodes are returned at once",
    load: async () => (await import("./commands/release.ts")).defineRelease,
  },
  {
    name: "retire",
    summary:
      "retire the backing node of a slot: it gets no new slots, and is deleted when its last slot is returned",
    load: async () => (await import("./commands/release.ts")).defineRetire,
  },
  {
    name: "list",
    summary: "list the nodes, or with --leases who holds them",
    load: async () => (await import("./commands/list.ts")).defineList,
  },
  {
    name: "top",
    summary: "show the nodes of each provider, requests and leases by state, and again when they change",
    load: async () => (await import("./commands/top.ts")).defineTop,
  },
  {
    name: "leaks",
    summary: "compare clouds with the records, and show what the launchers' sweeps would do; changes nothing",
    load: async () => (await import("./commands/clouds.ts")).defineLeaks,
  },
  {
    name: "request-list",
    summary: "list the node requests that are not answered yet, of Zuul and of everyone else",
    load: async () => (await import("./commands/list.ts")).defineRequestList,
  },
  {
    name: "explain",
    summary: "explain what a request, lease, node, label or diskimage waits for, and what happens next",
    load: async () => (await import("./commands/explain.ts")).defineExplain,
  },
  {
    name: "console",
    summary: "print the last lines of a node's console, as its cloud has them now",
    load: async () => (await import("./commands/console.ts")).defineConsole,
  },
  {
    name: "info",
    summary: "show the records of a provider",
    load: async () => (await import("./commands/info.ts")).defineInfo,
  },
  {
    name: "hold",
    summary: "keep a node for a person to look at; no request gets it",
    load: async () => (await import("./commands/node-state.ts")).defineHold,
  },
  {
    name: "delete",
    summary: "mark a node for deletion; a launcher that serves its provider deletes it",
    load: async () => (await import("./commands/node-state.ts")).defineDelete,
  },
  {
    name: "image-build",
    summary: "request a build of a diskimage; a builder carries it out",
    load: async () => (await import("./commands/image-build.ts")).defineImageBuild,
  },
  {
    name: "image-list",
    summary: "list uploads of diskimages to providers",
    load: async () => (await import("./commands/list.ts")).defineImageList,
  },
  {
    name: "dib-image-list",
    summary: "list builds of diskimages",
    load: async () => (await import("./commands/list.ts")).defineDibImageList,
  },
  {
    name: "image-status",
    summary:
      "list diskimages: whether they are paused, have a build request, and how trials of new builds go",
    load: async () => (await import("./commands/list.ts")).defineImageStatus,
  },
  {
    name: "image-pause",
    summary: "pause builds of a diskimage; uploads continue",
    load: async () => (await import("./commands/image-changes.ts")).defineImagePause,
  },
  {
    name: "image-unpause",
    summary: "resume builds of a diskimage",
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
    summary: "save the records of builds, uploads and trials to a file that only you can read",
    load: async () => (await import("./commands/image-changes.ts")).defineExport,
  },
  {
    name: "import-image-data",
    summary: "restore saved records of builds, uploads and trials; refused while a builder runs",
    load: async () => (await import("./commands/image-changes.ts")).defineImport,
  },
  {
    name: "backup",
    summary: 'save the tree of "nodeyard up" to a file, while it runs or not',
    load: async () => (await import("./commands/backup.ts")).defineBackup,
  },
  {
    name: "restore",
    summary: "restore a saved tree into the state folder; refused while a Nodeyard runs on it",
    load: async () => (await import("./commands/backup.ts")).defineRestore,
  },
  {
    name: "promote",
    summary: 'move the tree of "nodeyard up" to a ZooKeeper, or back, without ending the sessions of clients',
    load: async () => (await import("./commands/promote.ts")).definePromote,
  },
  {
    name: "alien-image-list",
    summary: "list images in clouds that Nodeyard made and that have no record; changes nothing",
    load: async () => (await import("./commands/clouds.ts")).defineAlienImages,
  },
  {
    name: "erase",
    summary:
      "delete the records of a provider's uploads and nodes from the tree; deletes nothing in its cloud, and cannot be undone",
    load: async () => (await import("./commands/erase.ts")).defineErase,
  },
  {
    name: "token",
    summary: "create, list and revoke the tokens by which clients use the API",
    load: async () => (await import("./commands/token.ts")).defineToken,
  },
  {
    name: "dashboard",
    summary: "print a link that logs one browser in to the page of the Nodeyard that runs here, once",
    load: async () => (await import("./commands/dashboard.ts")).defineDashboard,
  },
  {
    name: "doctor",
    summary:
      "look at configuration, disk, process, keys, ports, tree, clock, launchers and clouds, and say what to do",
    load: async () => (await import("./commands/doctor.ts")).defineDoctor,
  },
  {
    name: "config-validate",
    summary: "check the configuration; exit code 1 if it has errors (nodeyard -c FILE config-validate)",
    load: async () => (await import("./commands/config-validate.ts")).defineConfigValidate,
  },
  {
    name: "plan",
    summary:
      "play the requests of the last days on another configuration: waits, refusals and peaks beside today's",
    load: async () => (await import("./commands/plan.ts")).definePlan,
  },
  {
    name: "shadow",
    summary:
      "follow the requests of a live tree as a launcher would, write nothing, and say what it would do and what was done",
    load: async () => (await import("./commands/shadow.ts")).defineShadow,
  },
  {
    name: "takeover",
    summary:
      "follow the move of a provider from Nodepool's launcher to Nodeyard's, or back: what is safe, what has to end, what is next",
    load: async () => (await import("./commands/takeover.ts")).defineTakeover,
  },
  {
    name: "cost",
    summary: "what the nodes of the last days cost, by client, tenant, label, provider or request",
    load: async () => (await import("./commands/cost.ts")).defineCost,
  },
  {
    name: "docs",
    summary: "print where the documentation of this version is on this machine, or a page of it",
    load: async () => (await import("./commands/docs.ts")).defineDocs,
  },
  {
    name: "completion",
    summary: "print the script that lets a shell complete commands and options",
    load: async () => (await import("./commands/completion.ts")).defineCompletion,
    whole: true,
  },
  {
    name: "sliverd",
    summary:
      "run a sliver manager, turn machines into sliver hosts, manage the signing keys that hosts trust",
    load: async () => (await import("./commands/sliverd.ts")).defineSliverd,
  },
  {
    name: "caches",
    summary: "list, show, delete and pin what slivers of a machine leave to later ones",
    load: async () => (await import("./commands/caches.ts")).defineCaches,
  },
];
