import { faultsIn, type Mutant } from "../mutant.ts";

const BUILDER = "packages/nodeyard/src/builder";
const TESTS = "packages/nodeyard/test/builder";

/** What builders make, upload, keep and take away. */
export const IMAGES: readonly Mutant[] = [
  ...faultsIn("packages/nodeyard/src/scheduler/images.ts", [
    {
      name: "heads-whose-image-is-gone-hold-up-others",
      breaks: "rule 4",
      find: "if (blocked?.waiting.record.nodeTypes.includes(label)) state.todo.pools.add(policy.key);",
      put: "void blocked;",
      tests: ["packages/nodeyard/test/scheduler/incremental"],
    },
  ]),
  ...faultsIn(`${BUILDER}/control/build.ts`, [
    {
      name: "former-builds-are-settled-too-late",
      breaks: "promise: a build that ended before the last success is no failure since",
      find: 'if (found?.record.state === "building") await',
      put: 'if (found?.record.state === "deleting") await',
      tests: [`${TESTS}/shared-tree`],
    },
    {
      name: "old-requests-repeat-what-kills-builders",
      breaks: "promise: a build that kills its builder is not repeated at once",
      find: " && request.mtime > left",
      put: "",
      tests: [`${TESTS}/shared-tree`],
    },
  ]),
  ...faultsIn(`${BUILDER}/core/retire.ts`, [
    {
      name: "images-go-while-a-node-boots",
      breaks: "promise: what a node boots stays",
      find: 'return leaves && !facts.used.has(key) ? { do: "delete-upload", ...at } : undefined;',
      put: 'return leaves ? { do: "delete-upload", ...at } : undefined;',
      tests: [`${TESTS}/retire`],
    },
    {
      name: "only-upload-on-trial-goes",
      breaks: "promise: what a provider boots stays",
      find: "(proven.length > 0 ? proven : own)",
      put: "proven",
      tests: [`${TESTS}/retire`],
    },
    {
      name: "one-build-is-kept",
      breaks: "promise: two builds stay",
      find: "...ready.slice(0, KEEP), ...failed",
      put: "...ready.slice(0, 0), ...failed",
      tests: [`${TESTS}/retire`],
    },
    {
      name: "abandoned-uploads-stay",
      breaks: "rule 5",
      find: 'return { do: "settle-upload", ...at };',
      put: "return undefined;",
    },
    {
      name: "abandoned-builds-stay",
      breaks: "rule 5",
      find: 'if (build.state === "building") return [{ do: "settle-build", build: build.id }];',
      put: 'if (build.state === "building") return [];',
    },
  ]),
  ...faultsIn(`${BUILDER}/control/records.ts`, [
    {
      name: "image-records-are-made-without-the-lock",
      breaks: "protocol: fenced writes",
      find: 'tree.commit([{ op: "check", path: held.contender }, record])',
      put: 'tree.commit([{ op: "check", path: "/" }, record])',
      tests: [`${TESTS}/create-under`],
    },
    {
      name: "lost-image-lock-is-unexpected",
      breaks: "rule 6",
      find: "if (error instanceof CommitFailed && error.index === 0)",
      put: "if (error instanceof CommitFailed && error.index === 9)",
      tests: [`${TESTS}/create-under`],
    },
    {
      name: "image-locks-are-kept",
      breaks: "rule 4",
      find: "await context.fence.release(held).catch(",
      put: 'await Promise.reject(new TreeError("tree.no_node", parent)).catch(',
    },
  ]),
  ...faultsIn(`${BUILDER}/control/local-files.ts`, [
    {
      name: "files-of-failed-builds-stay",
      breaks: "rule 5",
      find: "await disk.remove(base);",
      put: "",
    },
    {
      name: "builds-of-other-installations-are-removed",
      breaks: "rule 5",
      find: "if (isBusy(intent.build) || intent.installation !== context.installation) continue;",
      put: "if (isBusy(intent.build)) continue;",
      tests: [`${TESTS}/life`, `${TESTS}/files`, `${TESTS}/shared-tree`],
    },
  ]),
  ...faultsIn(`${BUILDER}/control/build.ts`, [
    {
      name: "a-build-of-unknown-end-loses-its-files",
      breaks: "rule 6",
      find: "await disk.reclaim(intent).catch(() => {});\n    throw error;",
      put: "await disk.reclaim(intent).catch(() => {});\n    await disk.remove(baseName(image.name, build));\n    throw error;",
      tests: [`${TESTS}/life`],
    },
    {
      name: "builds-go-without-a-trial",
      breaks: "promise: a new build is tried first",
      find: "await beginTrial(context, image, record.id);",
      put: "",
      tests: [`${TESTS}/trial`],
    },
  ]),
  ...faultsIn(`${BUILDER}/control/janitor.ts`, [
    {
      name: "images-stay-in-the-cloud",
      breaks: "rule 5",
      find: "await removeFromCloud(context, provider, held, tag, externalIdOf(record.record.externalId), signal);",
      put: "",
      tests: [`${TESTS}/life`],
    },
  ]),
];
