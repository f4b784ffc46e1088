import { addChroot, stripChroot } from "../paths.ts";
import type { MultiResult, Request, Response } from "../wire/messages.ts";

/** The bit that all sequential create flags share. */
const SEQUENTIAL = 2;

/** Adds the chroot to the paths of a request. */
export function chrootRequest(chroot: string, request: Request): Request {
  if (chroot === "") return request;
  if ("path" in request) return placed(chroot, request);
  if ("ops" in request) return { ...request, ops: request.ops.map((op) => placed(chroot, op)) };
  if ("dataWatches" in request) {
    const all = (paths: readonly string[]) => paths.map((path) => addChroot(chroot, path));
    return {
      ...request,
      dataWatches: all(request.dataWatches),
      existWatches: all(request.existWatches),
      childWatches: all(request.childWatches),
      persistentWatches: all(request.persistentWatches),
      persistentRecursiveWatches: all(request.persistentRecursiveWatches),
    };
  }
  return request;
}

/** A sequential create of "/" must create a child of the chroot. Without the slash it would create a sibling "<chroot>0000000001". */
function placed<R extends Extract<Request, { readonly path: string }>>(chroot: string, request: R): R {
  const child = request.path === "/" && "flags" in request && (request.flags & SEQUENTIAL) !== 0;
  return { ...request, path: child ? `${chroot}/` : addChroot(chroot, request.path) };
}

/** Removes the chroot from the paths of a response. */
export function unchrootResponse(chroot: string, response: Response): Response {
  if (chroot === "") return response;
  if ("path" in response) return { ...response, path: stripChroot(chroot, response.path) };
  if ("results" in response) {
    const strip = (result: MultiResult): MultiResult =>
      "path" in result ? { ...result, path: stripChroot(chroot, result.path) } : result;
    return { results: response.results.map(strip) };
  }
  if ("ephemerals" in response) {
    return { ephemerals: response.ephemerals.map((path) => stripChroot(chroot, path)) };
  }
  return response;
}
