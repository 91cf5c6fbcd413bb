-- The role with which KEDA counts messages: it sees two columns of one table and nothing else. The owner of the database runs
-- this after the first migration, an administrator having created the role: CREATE ROLE geomill_scaler LOGIN PASSWORD '…';
GRANT CONNECT ON DATABASE :"DBNAME" TO geomill_scaler;
GRANT USAGE ON SCHEMA dagapp TO geomill_scaler;
GRANT SELECT (queue_name, visible_at) ON dagapp.dag_queue TO geomill_scaler;
