import { type Instance, type Json, type Limits, last, type OperationError } from "./limits.ts";
import type { GceSettings } from "./settings.ts";

/** An operation that begins: how long it takes, and what is so at its end, or its error. */
interface Beginning {
  readonly ms: number;
  readonly done?: () => void;
  readonly error?: OperationError;
}

/** The state from which a method goes on, the one on the way, and that at its end. */
const WAYS: Readonly<Record<string, readonly [from: RegExp, through: string, to: string]>> = {
  "instances.stop": [/./, "STOPPING", "TERMINATED"],
  "instances.suspend": [/^RUNNING$/, "SUSPENDING", "SUSPENDED"],
  "instances.resume": [/^SUSPENDED$/, "STAGING", "RUNNING"],
};

/**
 * Stops, suspends or resumes an instance ("Suspend, stop, or reset Compute Engine instances"). An ephemeral address is given back; what is resumed
 * needs room as a launch does, and gets another one.
 */
export function powered(
  method: string,
  instance: Instance,
  failing: OperationError | undefined,
  { startMs, stopMs, operationMs }: GceSettings,
  limits: Limits,
): Beginning {
  const [from, through, to] = WAYS[method]!;
  const isStart = to === "RUNNING";
  const refusal = from.test(instance.status) ? undefined : notNow(method, instance);
  const error =
    failing ?? refusal ?? (isStart ? limits.withoutRoom(last(instance.zone), instance) : undefined);
  if (error !== undefined) return { ms: operationMs, error };
  instance.status = through;
  const done = () => {
    // It was deleted meanwhile.
    if (instance.status !== through) return;
    instance.status = to;
    for (const access of accessesOf(instance)) {
      if (isStart) access.natIP = `203.0.113.${200 + (++resumed % 50)}`;
      else delete access.natIP;
    }
  };
  return { ms: isStart ? startMs : stopMs, done };
}

let resumed = 0;

function notNow(method: string, { name, status }: Instance): OperationError {
  return {
    code: "UNSUPPORTED_OPERATION",
    message: `You cannot ${last(method.replace(".", "/"))} '${name}', which is ${status}.`,
  };
}

function accessesOf({ networkInterfaces = [] }: Instance): Json[] {
  return (networkInterfaces as { accessConfigs: Json[] }[]).flatMap(({ accessConfigs }) => accessConfigs);
}
