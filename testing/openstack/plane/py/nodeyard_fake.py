"""A nova hypervisor (the stock fake one, plus latency and faults), a neutron
mechanism driver that binds every port, and a WSGI filter that delays or refuses
API requests.  All of them read faults.json again at every call:

  {"spawn_delay": 3, "spawn_error_rate": 0.1, "spawn_error": "...",
   "destroy_delay": [1, 5], "destroy_error_rate": 1, "bind_error_rate": 1,
   "api": [{"service": "nova", "method": "POST", "path": "/servers$",
            "delay": 2, "status": 503, "rate": 0.5}]}
"""
import io
import json
import os
import random
import re
import time

FAULTS = os.environ.get('NODEYARD_FAULTS', '')


def faults():
    try:
        with open(FAULTS) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def _delay(value):
    if isinstance(value, list):
        value = random.uniform(*value)
    if value:
        time.sleep(float(value))        # green in nova-compute


class Api:
    """paste filter"""
    def __init__(self, app, service):
        self.app, self.service = app, service

    def __call__(self, environ, start_response):
        for r in faults().get('api', ()):
            if (r.get('service', self.service) == self.service
                    and r.get('method', environ['REQUEST_METHOD']) == environ['REQUEST_METHOD']
                    and re.search(r.get('path', ''), environ.get('SCRIPT_NAME', '') + environ['PATH_INFO'])
                    and random.random() < r.get('rate', 1)):
                _delay(r.get('delay'))
                if r.get('status'):
                    body = json.dumps({'error': {'code': r['status'], 'message': r.get('message', 'injected fault')}}).encode()
                    start_response('%d Injected' % r['status'], [
                        ('Content-Type', 'application/json'), ('Content-Length', str(len(body)))]
                        + [(k, str(v)) for k, v in r.get('headers', {}).items()])
                    return [body]
        return self.app(environ, start_response)


def api_filter(global_conf, service, **conf):
    return lambda app: Api(app, service)


def nova_module():
    import types
    from nova import exception
    from nova.virt import fake

    class Driver(fake.FakeDriver):
        vcpus = 1000
        memory_mb = 2000000
        local_gb = 600000

        def spawn(self, context, instance, image_meta, *a, **kw):
            f = faults()
            _delay(f.get('spawn_delay'))
            if random.random() < f.get('spawn_error_rate', 0):
                raise exception.BuildAbortException(
                    instance_uuid=instance.uuid,
                    reason=f.get('spawn_error', 'injected spawn fault'))
            return super().spawn(context, instance, image_meta, *a, **kw)

        def destroy(self, context, instance, *a, **kw):
            f = faults()
            _delay(f.get('destroy_delay'))
            if random.random() < f.get('destroy_error_rate', 0):
                raise exception.InstanceTerminationFailure(
                    reason=f.get('destroy_error', 'injected destroy fault'))
            return super().destroy(context, instance, *a, **kw)

        def snapshot(self, context, instance, image_id, update_task_state):
            super().snapshot(context, instance, image_id, update_task_state)
            from nova.image import glance
            from oslo_utils import units
            glance.API().update(context, image_id, {
                'disk_format': 'raw', 'container_format': 'bare', 'size': 64 * units.Ki,
                'name': glance.API().get(context, image_id)['name']},
                io.BytesIO(b'nodeyard snapshot\n'.ljust(64 * units.Ki, b'\0')), purge_props=False)

        def get_console_output(self, context, instance):
            return b'FAKE CONSOLE OUTPUT\n'

    m = types.ModuleType('nova.virt.nodeyard')
    m.Driver = Driver
    return m


def ml2_driver():
    from neutron_lib import constants
    from neutron_lib.api.definitions import portbindings
    from neutron_lib.plugins.ml2 import api

    class MechanismDriver(api.MechanismDriver):
        def initialize(self):
            pass

        @property
        def connectivity(self):
            return portbindings.CONNECTIVITY_L2

        def bind_port(self, context):
            f = faults()
            if random.random() < f.get('bind_error_rate', 0):
                return
            context.set_binding(context.segments_to_bind[0][api.ID],
                                portbindings.VIF_TYPE_OTHER,
                                {portbindings.CAP_PORT_FILTER: True},
                                status=constants.PORT_STATUS_ACTIVE)

    return MechanismDriver


def __getattr__(name):
    if name == 'MechanismDriver':
        return ml2_driver()
    raise AttributeError(name)
