"""What costs the services processor time and nothing checks is left out here: everything else is the packages' own code.
Called once in each process, after eventlet's patches and before a service opens its database."""
import gc


def save():
    # A full collection goes through all that was imported, and finds nothing.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    database()
    objects()


def database():
    from oslo_db.sqlalchemy import engines
    from pymysql.connections import Connection
    from pymysql.constants.SERVER_STATUS import SERVER_STATUS_IN_TRANS as OPEN

    # A "SELECT 1" before each use of a connection, for databases that restart, and a yield after it, for blocking clients.
    engines._connect_ping_listener = engines._thread_yield = lambda *_: None
    query, rollback = Connection.query, Connection.rollback

    def opens(self, *a, **kw):
        self.server_status |= OPEN   # until an answer says otherwise: those to reads and failures do not
        return query(self, *a, **kw)

    def needed(self):   # SQLAlchemy's pool sends one more after each commit and rollback
        if self.server_status & OPEN:
            rollback(self)

    Connection.query, Connection.rollback = opens, needed


def objects():
    from oslo_versionedobjects import base
    is_set = base.VersionedObject.obj_attr_is_set

    def known(self, name):   # without a list of all fields for each question
        return hasattr(self, '_obj_' + name) if name in self.fields else is_set(self, name)

    base.VersionedObject.obj_attr_is_set = known


def compute():
    """Nova reads the allocation of each server of a host whenever one is made or deleted, one call of placement for each, for drivers
    that move allocations to other providers. This driver has no others."""
    from nova.scheduler.client.report import SchedulerReportClient
    SchedulerReportClient.get_allocations_for_provider_tree = lambda *_: {}
