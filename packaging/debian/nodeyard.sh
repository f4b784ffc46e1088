#!/bin/sh
exec /usr/lib/nodeyard/node /usr/lib/nodeyard/node_modules/nodeyard/src/bin/nodeyard.cjs "$@"
