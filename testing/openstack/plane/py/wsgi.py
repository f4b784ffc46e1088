"""The application of the service that NODEYARD_WSGI names, as its script in /usr/bin makes it."""
import importlib
import os

import thrifty

MAIN = {
    'keystone': 'keystone.server.wsgi:initialize_public_application',
    'placement': 'placement.wsgi:init_application',
}
mod, func = MAIN[os.environ['NODEYARD_WSGI']].split(':')
main = getattr(importlib.import_module(mod), func)
thrifty.save()
application = main()
