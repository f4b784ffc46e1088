"""svc.py SERVICE [ARGS]: what the /usr/bin scripts of Debian's service packages do."""
import importlib
import sys
MAIN = {
    'glance-manage': 'glance.cmd.manage:main',
    'placement-manage': 'placement.cmd.manage:main',
    'neutron-db-manage': 'neutron.db.migration.cli:main',
    'cinder-manage': 'cinder.cmd.manage:main',
    'cinder-api': 'cinder.cmd.api:main',
    'cinder-scheduler': 'cinder.cmd.scheduler:main',
    'cinder-volume': 'cinder.cmd.volume:main',
    'glance-api': 'glance.cmd.api:main',
    'nova-api': 'nova.cmd.api_os_compute:main',
    'nova-conductor': 'nova.cmd.conductor:main',
    'nova-scheduler': 'nova.cmd.scheduler:main',
    'nova-compute': 'nova.cmd.compute:main',
}
name = sys.argv[1]
sys.argv = [name] + sys.argv[2:]
if name == 'neutron-server':    # the API alone: no agents, so no RPC and no periodic workers
    import neutron.cmd.eventlet  # noqa: monkey-patches
    from sqlalchemy.orm import relationships
    rel_init = relationships.RelationshipProperty.__init__

    def joined(self, *a, **kw):   # SQLAlchemy 1.4 compiles every "subquery" load anew
        if kw.get('lazy') == 'subquery':
            kw['lazy'] = 'joined'
        rel_init(self, *a, **kw)
    relationships.RelationshipProperty.__init__ = joined
    import signal
    from neutron import server, service

    def serve():
        api = service.serve_wsgi(service.NeutronApiService)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        api.wait()
    sys.exit(server.boot_server(serve))
if name in ('nova-api', 'nova-conductor'):
    import nova.monkey_patch  # noqa: before anything else of nova's
    import nodeyard_fake
    from nova import objects
    objects.register_all()
    nodeyard_fake.note_freed()
mod, func = MAIN[name].split(':')
main = getattr(importlib.import_module(mod), func)
if name == 'nova-compute':
    import nodeyard_fake
    sys.modules['nova.virt.nodeyard'] = nodeyard_fake.nova_module()
    from nova.servicegroup import api
    api.INITIAL_REPORTING_DELAY = 0.5   # not 5 s
sys.exit(main())
