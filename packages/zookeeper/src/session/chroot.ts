import { addChroot, stripChroot } from "../paths.ts";
import type { MultiOpRequest, MultiResult, Request, Response } from "../wire/messages.ts";

/** The request as the server of this chroot must see it. */
export function chrootRequest(chroot: string, request: Request): Request {
  if (chroot === "") return request;
  if ("path" in request) return { ...request, path: addChroot(chroot, request.path) };
  if ("ops" in request) {
    const ops = request.ops.map((op): MultiOpRequest => ({ ...op, path: addChroot(chroot, op.path) }));
    return { ...request, ops };
  }
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

/** The response as the user of this chroot must see it. */
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
