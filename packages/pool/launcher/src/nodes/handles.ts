import type { Scanner } from "@nodeyard/driver";
import type { NodeRecord } from "@nodeyard/model";
import type { RequestEntry } from "@nodeyard/view";
import type { OpenProvider, ServingPool } from "../handles.ts";
import type { HeldRequest, RecordHandles } from "../held-records.ts";
import type { Launches } from "../launches.ts";
import type { Timings } from "../timings.ts";
import type { SlotAnswers } from "./slot-answers.ts";

/** A step in progress; `began` is tree time, milliseconds. Shown by `explain` while the step runs. */
export interface StepUnderWay extends TraceSubject {
  readonly step: string;
  readonly began: number;
}

/** Whose steps they are; these facts stand in every event. */
export interface TraceSubject {
  readonly node: string;
  /** The kind of work that the step belongs to. */
  readonly of: "launch" | "clean-up" | "delete" | "suspend" | "wake" | "check";
  /** 1 for the first. */
  readonly attempt: number;
}

/** For what makes and unmakes nodes. */
export interface NodeHandles extends RecordHandles {
  /** UUID of the installation, from `/nodeyard/installation`. */
  readonly installation: string;
  /** Open providers, by name. */
  readonly providers: ReadonlyMap<string, OpenProvider>;
  /**
   * The open provider that deletes the machine of a record: the one of its name, or a former one of that name which looks where the
   * machine is.
   */
  openFor(record: NodeRecord): OpenProvider | undefined;
  /** The driver step in progress for each node, by node id. Written by StepTrace, read for `explain`. */
  readonly stepsUnderWay: Map<string, StepUnderWay>;
}

/** A check of one node: the program with its arguments, and what it is told. */
export interface CheckOrder {
  readonly command: readonly string[];
  readonly node: NodeRecord;
}

/** Runs it until it has ended. Resolves with undefined, or with why the node did not pass. Kills it at `signal`. */
export type RunCheck = (order: CheckOrder, signal: AbortSignal) => Promise<string | undefined>;

/** For launches. */
export interface LaunchHandles extends NodeHandles {
  /** Waits until a machine answers, and reads its host keys. */
  readonly scan: Scanner;
  /** Runs the program that says whether a node may be used again; absent: none is. */
  readonly check?: RunCheck;
  /** Asks the scheduler whether a launch may begin, and records how it ended. */
  readonly launches: Launches;
  /** Durations of launches, for forecasts. */
  readonly timings: Timings;
  /** Pools being served, by key. */
  readonly pools: ReadonlyMap<string, ServingPool>;
  /** Slots for launches that wait for one. */
  readonly slots: SlotAnswers;
  /** The trace that the launch of a node belongs to; absent: nothing is traced. */
  readonly traceparentOf?: (request: HeldRequest, node: string) => string | undefined;
  /** To be called when a cloud has no room for a type, and names zones that have. */
  zonesWithRoom(provider: string, type: string, zones: readonly string[]): void;
  /** To be called when a cloud refuses for quota. */
  quotaRefused(provider: string): void;
}

/** For what serves requests. */
export interface RequestHandles extends LaunchHandles {
  /** Whether a request does not fail yet although all registered pools declined it; see Loop.awaitsOffer. */
  awaitsOffer(request: Pick<RequestEntry, "id" | "record">): boolean;
  /**
   * Ready nodes in a row that could not be handed over to a request, by its id. Removed when the request ends here or is gone; bounded
   * in claim.ts.
   */
  readonly handOversFailed: Map<string, { readonly times: number; readonly why: string }>;
}
