import { type Canary, decodeNode, paths } from "@nodeyard/model";
import type { OperationHandles } from "../handles.ts";
import { type ListedBuild, lookUpImage } from "../images/index.ts";
import { type ImageCode, imageCodes, imageNext } from "./codes.ts";
import { type BuilderLine, builderLine, imageParts } from "./image-parts.ts";
import { type MemberReplies, type QueryMembers, replyParts } from "./member-replies.ts";
import { byNextTry } from "./pool-line.ts";
import { iso, isoOf } from "./reason.ts";
import type { Story, Wait } from "./story.ts";
import { readEach, registeredBuilders } from "./tree-facts.ts";

/** The first code of this list that a builder reports is shown: work in progress first, then waiting, then what needs an operator. */
const FIRST: readonly ImageCode[] = [
  "image.building",
  "image.due",
  "image.put-off",
  "image.back-off",
  "image.paused",
  "image.fresh",
  "image.no-formats",
];
/** Codes that need no action and no waiting. */
const CALM: ReadonlySet<ImageCode> = new Set(["image.building", "image.fresh"]);

/**
 * The explanation of a diskimage. Undefined when the tree knows no such diskimage, and no builder that answered has it
 * configured: a folder that is left empty is none.
 */
export async function imageStory(
  handles: OperationHandles,
  image: string,
  query: QueryMembers,
): Promise<Story | undefined> {
  const { tree } = handles;
  const [known, nodes, registered, replies] = await Promise.all([
    lookUpImage(handles, image),
    readEach(tree, paths.nodes, decodeNode),
    registeredBuilders(tree),
    query({ image }),
  ]);
  const { status, builds, uploads } = known;
  const builders = buildersIn(replies);
  const isConfigured = builders.some(({ code }) => code !== "image.not-configured");
  const { paused, request, canary: trial } = status;
  if (!isConfigured && builds.length === 0 && request === null && !paused) return undefined;
  const requestedAt = request === null ? null : request.at * 1000;
  const { code, by } = reasonOf(builders, registered.length > 0);
  const waits_for: Wait | null = CALM.has(code)
    ? null
    : {
        code,
        meaning: imageCodes[code],
        since: iso(requestedAt),
        source: by === undefined ? "tree" : "builder",
        facts: by?.facts ?? {},
        next_try: by?.next_try ?? null,
      };
  return {
    kind: "image",
    id: image,
    ...stateOf(builds, paused),
    about: {
      paused,
      requested_at: requestedAt,
      builders: registered,
      trial: trial?.candidate == null ? null : trialFacts(trial),
      last_trial: trial?.last == null ? null : endFacts(trial.last),
    },
    waits_for,
    next: imageNext[code],
    ...replyParts(replies),
    pools: [],
    steps: [],
    image: imageParts({ builds, uploads, nodes, trial }, builders),
  };
}

/**
 * The newest record that tells how it went, and the pause above all but a build that is under way: nothing else begins as long as
 * it stands.
 */
function stateOf(builds: readonly ListedBuild[], paused: boolean): Pick<Story, "state" | "since"> {
  const newest = (...states: readonly string[]) => builds.find(({ record }) => states.includes(record.state));
  const building = newest("building");
  if (building !== undefined) return { state: "building", since: isoOf(building.record.stateTime) };
  if (paused) return { state: "paused", since: null };
  const last = newest("ready", "failed");
  if (last === undefined) return { state: "unbuilt", since: null };
  return { state: last.record.state === "ready" ? "ready" : "failing", since: isoOf(last.record.stateTime) };
}

/** The outlooks of all builders that answered, each with its name. */
function buildersIn({ asked }: MemberReplies): readonly BuilderLine[] {
  return asked.answers.flatMap(({ member, hostname, testimony }) =>
    (testimony.imageStandings ?? []).map((outlook) => builderLine(outlook, member, hostname)),
  );
}

/**
 * The code for the image of what its builders say: `FIRST` orders them, since one that builds makes the others' waiting
 * irrelevant.
 */
function reasonOf(
  builders: readonly BuilderLine[],
  isRegistered: boolean,
): { readonly code: ImageCode; readonly by?: BuilderLine } {
  const builds = builders.filter(({ work }) => work === "build");
  for (const code of FIRST) {
    // Of several that wait, the one whose next try comes first.
    const [by] = builds.filter((line) => line.code === code).sort(byNextTry);
    if (by !== undefined) return { code, by };
  }
  if (builds.length > 0) return { code: "image.not-configured" };
  return { code: isRegistered ? "image.unasked" : "image.no-builder" };
}

/** How the trial goes that is under way. `percent`: of launches. */
function trialFacts({ candidate, share, since, tallies }: Canary) {
  const { boots, failed } = tallies.candidate;
  return { build: candidate, percent: Math.round(share * 100), since_at: since, booted: boots, failed };
}

/** How the last trial ended. */
function endFacts({ build, verdict, why, at }: NonNullable<Canary["last"]>) {
  return { build, verdict, why, ended_at: at };
}
