#!/bin/sh
# Node is not told by which link it was started, so the old names choose their command here, as bin/nodeyard.ts does elsewhere.
case "${0##*/} ${1-}" in
  *' --version') ;;
  'nodepool-launcher '*) set -- launcher "$@" ;;
  'nodepool-builder '*) set -- builder "$@" ;;
esac
exec /usr/lib/nodeyard/node /usr/lib/nodeyard/node_modules/nodeyard/src/bin/nodeyard.cjs "$@"
