// The processes. Settings are those of deploy/kubernetes, with identities instead of secrets.
param name string
param location string
param image string
param registryServer string
param subnetId string
param identityIds object
param clientIds object
param databaseHost string
param bronzeAccount string
param silverAccount string
param externalAccount string
param vaultUri string
param broker string
param busNamespace string
param exporter string
param factoryId string
param publicUrl string
param externalUrl string
param heavyReplicas int

var tls = 'sslmode=verify-full&sslrootcert=/etc/ssl/certs/ca-certificates.crt'
var shared = [
  {
    name: 'GEOMILL_LOG_FORMAT'
    value: 'json'
  }
  {
    name: 'GEOMILL_DATABASE_AUTH'
    value: 'azure'
  }
  {
    name: 'GEOMILL_EXTERNAL'
    value: 'az://${externalAccount}'
  }
  {
    name: 'GEOMILL_TRUSTED_PROXIES'
    value: '10.40.0.0/23'
  }
]
var zones = [
  {
    name: 'GEOMILL_BRONZE'
    value: 'az://${bronzeAccount}'
  }
  {
    name: 'GEOMILL_SILVER'
    value: 'az://${silverAccount}'
  }
]
var delivery = broker == 'servicebus' ? [
  {
    name: 'GEOMILL_BROKER'
    value: 'servicebus'
  }
  {
    name: 'SERVICE_BUS_NAMESPACE'
    value: '${busNamespace}.servicebus.windows.net'
  }
] : []
var exports = exporter == 'data_factory' ? [
  {
    name: 'GEOMILL_EXPORTER'
    value: 'data_factory'
  }
  {
    name: 'GEOMILL_DATA_FACTORY'
    value: factoryId
  }
  {
    name: 'GEOMILL_DATA_FACTORY_PIPELINE'
    value: 'geomill-export'
  }
] : []
var engine = concat(shared, zones, delivery, [
  {
    name: 'MANAGED_IDENTITY_CLIENT_ID'
    value: clientIds.engine
  }
  {
    name: 'GEOMILL_DATABASE_URL'
    value: 'postgresql://${name}-engine@${databaseHost}/geomill?${tls}'
  }
  {
    name: 'GEOMILL_EXTERNAL_DATABASE_URL'
    value: 'postgresql://${name}-engine@${databaseHost}/geomill_external?${tls}'
  }
])
var live = {
  httpGet: {
    path: '/health/live'
    port: 8000
  }
  type: 'Liveness'
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 6
}
var started = {
  httpGet: {
    path: '/health/live'
    port: 8000
  }
  type: 'Startup'
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 90
}
var servers = [
  {
    name: 'gateway'
    identity: 'gateway'
    open: true
    args: [
      'gateway'
      '--host'
      '0.0.0.0'
      '--port'
      '8000'
    ]
    secrets: [
      {
        name: 'link-secret'
        keyVaultUrl: '${vaultUri}secrets/link-secret'
        identity: identityIds.gateway
      }
    ]
    env: concat(shared, zones, exports, [
      {
        name: 'MANAGED_IDENTITY_CLIENT_ID'
        value: clientIds.gateway
      }
      {
        name: 'GEOMILL_DATABASE_URL'
        value: 'postgresql://${name}-gateway@${databaseHost}/geomill?${tls}'
      }
      {
        name: 'GEOMILL_EXTERNAL_DATABASE_URL'
        value: 'postgresql://${name}-gateway@${databaseHost}/geomill_external?${tls}'
      }
      {
        name: 'GEOMILL_PUBLIC_URL'
        value: publicUrl
      }
      {
        name: 'GEOMILL_EXTERNAL_URL'
        value: externalUrl
      }
      {
        name: 'GEOMILL_SERVE_MEMORY_MB'
        value: '2048'
      }
      {
        name: 'GEOMILL_LINK_SECRET'
        secretRef: 'link-secret'
      }
    ])
  }
  {
    name: 'internal'
    identity: 'reader'
    open: false
    args: [
      'serve'
      '--zone'
      'internal'
      '--host'
      '0.0.0.0'
      '--port'
      '8000'
    ]
    secrets: [
      {
        name: 'link-secret'
        keyVaultUrl: '${vaultUri}secrets/link-secret'
        identity: identityIds.reader
      }
    ]
    env: concat(shared, [
      {
        name: 'GEOMILL_SILVER'
        value: 'az://${silverAccount}'
      }
      {
        name: 'MANAGED_IDENTITY_CLIENT_ID'
        value: clientIds.reader
      }
      {
        name: 'GEOMILL_DATABASE_URL'
        value: 'postgresql://${name}-reader@${databaseHost}/geomill?${tls}'
      }
      {
        name: 'GEOMILL_SERVE_MEMORY_MB'
        value: '2048'
      }
      {
        name: 'GEOMILL_LINK_SECRET'
        secretRef: 'link-secret'
      }
    ])
  }
  {
    name: 'external'
    identity: 'external'
    open: true
    args: [
      'serve'
      '--zone'
      'external'
      '--host'
      '0.0.0.0'
      '--port'
      '8000'
    ]
    secrets: []
    env: concat(shared, [
      {
        name: 'MANAGED_IDENTITY_CLIENT_ID'
        value: clientIds.external
      }
      {
        name: 'GEOMILL_EXTERNAL_DATABASE_URL'
        value: 'postgresql://${name}-external@${databaseHost}/geomill_external?${tls}'
      }
      {
        name: 'GEOMILL_SERVE_MEMORY_MB'
        value: '2048'
      }
    ])
  }
]
var workers = [
  {
    name: 'worker-light'
    queues: [
      'functionapp-tasks'
      'dag-worker-tasks'
    ]
    args: [
      'worker'
      '--queue'
      'functionapp-tasks'
      '--queue'
      'dag-worker-tasks'
      '--concurrency'
      '16'
    ]
    env: [
      {
        name: 'GEOMILL_TASK_PROCESSES'
        value: '2'
      }
      {
        name: 'GEOMILL_TASK_MEMORY_MB'
        value: '1024'
      }
      {
        name: 'GEOMILL_DRAIN_SECONDS'
        value: '60'
      }
    ]
    slots: '16'
    least: 1
    most: 10
    cpu: '2.0'
    memory: '4Gi'
    query: 'SELECT count(*) FROM (SELECT FROM dagapp.dag_queue WHERE queue_name IN (\'functionapp-tasks\', \'dag-worker-tasks\') AND visible_at <= now() LIMIT 10000) AS work'
  }
  {
    name: 'worker-heavy'
    queues: [
      'container-tasks'
    ]
    args: [
      'worker'
      '--queue'
      'container-tasks'
      '--concurrency'
      '4'
    ]
    env: [
      {
        name: 'GEOMILL_TASK_PROCESSES'
        value: '4'
      }
      {
        name: 'GEOMILL_TASK_MEMORY_MB'
        value: '1536'
      }
      {
        name: 'GEOMILL_DRAIN_SECONDS'
        value: '540'
      }
    ]
    slots: '4'
    least: 1
    most: heavyReplicas
    cpu: '4.0'
    memory: '8Gi'
    query: 'SELECT count(*) FROM (SELECT FROM dagapp.dag_queue WHERE queue_name IN (\'container-tasks\') AND visible_at <= now() LIMIT 10000) AS work'
  }
]

resource logs 'Microsoft.OperationalInsights/workspaces@2023-09-01' = {
  name: '${name}-logs'
  location: location
  properties: {
    sku: {
      name: 'PerGB2018'
    }
    retentionInDays: 30
  }
}

resource appEnvironment 'Microsoft.App/managedEnvironments@2025-01-01' = {
  name: '${name}-apps'
  location: location
  properties: {
    vnetConfiguration: {
      infrastructureSubnetId: subnetId
    }
    workloadProfiles: [
      {
        name: 'Consumption'
        workloadProfileType: 'Consumption'
      }
      {
        name: 'heavy'
        workloadProfileType: 'D8'
        minimumCount: 1
        maximumCount: 6
      }
    ]
    appLogsConfiguration: {
      destination: 'log-analytics'
      logAnalyticsConfiguration: {
        customerId: logs.properties.customerId
        sharedKey: logs.listKeys().primarySharedKey
      }
    }
  }
}

resource serverApps 'Microsoft.App/containerApps@2025-01-01' = [for server in servers: {
  name: '${name}-${server.name}'
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityIds[server.identity]}': {}
    }
  }
  properties: {
    environmentId: appEnvironment.id
    workloadProfileName: 'Consumption'
    configuration: {
      registries: [
        {
          server: registryServer
          identity: identityIds[server.identity]
        }
      ]
      secrets: server.secrets
      ingress: {
        external: server.open
        targetPort: 8000
        transport: 'http'
        allowInsecure: false
      }
    }
    template: {
      terminationGracePeriodSeconds: 30
      containers: [
        {
          name: server.name
          image: image
          args: server.args
          env: server.env
          probes: [
            live
            started
          ]
          resources: {
            cpu: json('2.0')
            memory: '4Gi'
          }
        }
      ]
      scale: {
        minReplicas: 2
        maxReplicas: 10
        rules: [
          {
            name: 'requests'
            http: {
              metadata: {
                concurrentRequests: '50'
              }
            }
          }
        ]
      }
    }
  }
}]

resource orchestrator 'Microsoft.App/containerApps@2025-01-01' = {
  name: '${name}-orchestrator'
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityIds.engine}': {}
    }
  }
  properties: {
    environmentId: appEnvironment.id
    workloadProfileName: 'Consumption'
    configuration: {
      registries: [
        {
          server: registryServer
          identity: identityIds.engine
        }
      ]
      secrets: [
        {
          name: 'callback-secret'
          keyVaultUrl: '${vaultUri}secrets/callback-secret'
          identity: identityIds.engine
        }
      ]
    }
    template: {
      terminationGracePeriodSeconds: 60
      containers: [
        {
          name: 'orchestrator'
          image: image
          args: [
            'orchestrator'
          ]
          env: concat(engine, [
            {
              name: 'GEOMILL_CALLBACK_SECRET'
              secretRef: 'callback-secret'
            }
          ])
          resources: {
            cpu: json('1.0')
            memory: '2Gi'
          }
        }
      ]
      scale: {
        minReplicas: 2
        maxReplicas: 2
      }
    }
  }
}

resource workerApps 'Microsoft.App/containerApps@2025-01-01' = [for worker in workers: {
  name: '${name}-${worker.name}'
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityIds.engine}': {}
      '${identityIds.scaler}': {}
    }
  }
  properties: {
    environmentId: appEnvironment.id
    workloadProfileName: worker.name == 'worker-heavy' ? 'heavy' : 'Consumption'
    configuration: {
      registries: [
        {
          server: registryServer
          identity: identityIds.engine
        }
      ]
      secrets: broker == 'servicebus' ? [] : [
        {
          name: 'scaler-connection'
          keyVaultUrl: '${vaultUri}secrets/scaler-connection'
          identity: identityIds.scaler
        }
      ]
    }
    template: {
      terminationGracePeriodSeconds: 600
      containers: [
        {
          name: worker.name
          image: image
          args: worker.args
          env: concat(engine, worker.env)
          resources: {
            cpu: json(worker.cpu)
            memory: worker.memory
          }
        }
      ]
      scale: {
        minReplicas: worker.least
        maxReplicas: worker.most
        pollingInterval: 15
        cooldownPeriod: 300
        rules: broker == 'servicebus' ? map(worker.queues, queue => {
          name: queue
          custom: {
            type: 'azure-servicebus'
            identity: identityIds.scaler
            metadata: {
              queueName: queue
              namespace: busNamespace
              messageCount: worker.slots
            }
          }
        }) : [
          {
            name: 'queue'
            custom: {
              type: 'postgresql'
              metadata: {
                query: worker.query
                targetQueryValue: worker.slots
              }
              auth: [
                {
                  secretRef: 'scaler-connection'
                  triggerParameter: 'connection'
                }
              ]
            }
          }
        ]
      }
    }
  }
}]

resource migrate 'Microsoft.App/jobs@2025-01-01' = {
  name: '${name}-migrate'
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityIds.migrate}': {}
    }
  }
  properties: {
    environmentId: appEnvironment.id
    workloadProfileName: 'Consumption'
    configuration: {
      triggerType: 'Manual'
      replicaTimeout: 3600
      replicaRetryLimit: 3
      manualTriggerConfig: {
        parallelism: 1
        replicaCompletionCount: 1
      }
      registries: [
        {
          server: registryServer
          identity: identityIds.migrate
        }
      ]
    }
    template: {
      containers: [
        {
          name: 'migrate'
          image: image
          args: [
            'db'
            'migrate'
          ]
          env: [
            {
              name: 'GEOMILL_DATABASE_AUTH'
              value: 'azure'
            }
            {
              name: 'MANAGED_IDENTITY_CLIENT_ID'
              value: clientIds.migrate
            }
            {
              name: 'GEOMILL_DATABASE_URL'
              value: 'postgresql://${name}-migrate@${databaseHost}/geomill?${tls}'
            }
            {
              name: 'GEOMILL_EXTERNAL_DATABASE_URL'
              value: 'postgresql://${name}-migrate@${databaseHost}/geomill_external?${tls}'
            }
          ]
          resources: {
            cpu: json('1.0')
            memory: '2Gi'
          }
        }
      ]
    }
  }
}

output gatewayHost string = serverApps[0].properties.configuration.ingress.fqdn
output externalHost string = serverApps[2].properties.configuration.ingress.fqdn
